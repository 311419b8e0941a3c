// Memory of large arrays, kept for the arrays that come after them.
//
// The system hands out pages as they are first touched and clears each, which takes
// longer than most element-wise operators take. NumPy calls these functions for the data
// of its arrays (NEP 49): small arrays go to the allocator that was there before.
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct {
    void *context;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *, size_t);
} allocator;

// NumPy's PyDataMem_Handler, version 1.
typedef struct {
    char name[127];
    uint8_t version;
    allocator allocator;
} handler;

// The head of a block, in front of its data.
typedef struct block {
    uintptr_t mark;
    struct block *next;
    void *memory;
    size_t mapped;  // bytes of its pages, 0 of memory from the heap
    size_t room;
} block;

enum {
    LINE = 64,        // bytes that data are aligned to, and of a head
    PAGE = 2 << 20,   // of a large page
    LEAST = 1 << 17,  // of an array whose memory is kept
    PARTS = 8         // sizes from a power of two to the next one
};
static const size_t MOST = (size_t)64 << 20;  // bytes that are kept
static const uintptr_t MARK = (uintptr_t)0x9e3779b97f4a7c15;

static const allocator *before;
static block *free_blocks[PARTS * 8 * sizeof(size_t) + PARTS];
static size_t kept;  // bytes of free blocks
static char is_busy;

static void lock(void) {
    while (__atomic_test_and_set(&is_busy, __ATOMIC_ACQUIRE)) {}
}

static void unlock(void) { __atomic_clear(&is_busy, __ATOMIC_RELEASE); }

// A child has the lists as no thread is changing them.
__attribute__((constructor)) static void prepare(void) {
    pthread_atfork(lock, unlock, unlock);
}

// The number of the smallest size that holds `size` bytes, which becomes that size.
static size_t size_number(size_t *size) {
    const int power = 63 - __builtin_clzll(*size);
    const size_t step = (size_t)1 << (power - 3), count = (*size + step - 1) / step;
    *size = count * step;
    return (size_t)power * PARTS + count - PARTS;
}

static block *head_of(void *data) { return (block *)((char *)data - LINE); }

// A head is in the page of aligned data, or right in front of what another allocator's
// own head is in.
static int is_ours(void *data) {
    const uintptr_t place = (uintptr_t)data;
    return data && place % LINE == 0 && head_of(data)->mark == (MARK ^ place);
}

// Free blocks in a row, kept no longer, so many that `room` bytes can be kept instead:
// of each size in turn, so that sizes which nothing asks for any more make place too.
static block *displaced(size_t room) {
    static size_t turn;
    block *row = 0;
    while (kept && kept + room > MOST) {
        turn = (turn + 1) % (sizeof free_blocks / sizeof *free_blocks);
        block *b = free_blocks[turn];
        if (!b) continue;
        free_blocks[turn] = b->next;
        kept -= b->room;
        b->next = row;
        row = b;
    }
    return row;
}

static void let_go(block *row) {
    while (row) {
        block *b = row;
        row = b->next;
        b->mark = 0;
        if (b->mapped)
            munmap(b->memory, b->mapped);
        else
            free(b->memory);
    }
}

// Pages of their own, whose release leaves no gap in the heap; 0 where there are none.
static void *pages(size_t size) {
#ifdef __SANITIZE_ADDRESS__  // which looks after the heap's blocks alone
    (void)size;
    return 0;
#else
    const int kind = MAP_PRIVATE | MAP_ANON;
    void *memory = mmap(0, size, PROT_READ | PROT_WRITE, kind, -1, 0);
    return memory == MAP_FAILED ? 0 : memory;
#endif
}

// A block that the system gives; its pages are zeros where `is_clear`.
static block *made(size_t room, int is_clear) {
    const size_t size = room + 2 * LINE;
    char *memory = pages(size);
    const size_t mapped = memory ? size : 0;
    if (!memory) memory = is_clear ? calloc(size, 1) : malloc(size);
    if (!memory) return 0;
#ifdef __linux__
    if (room >= 2 * PAGE) {
        const uintptr_t start = ((uintptr_t)memory + PAGE - 1) / PAGE * PAGE;
        madvise((void *)start, (uintptr_t)memory + size - start, MADV_HUGEPAGE);
    }
#endif
    char *data = (char *)(((uintptr_t)memory + 2 * LINE - 1) / LINE * LINE);
    *head_of(data) = (block){MARK ^ (uintptr_t)data, 0, memory, mapped, room};
    return head_of(data);
}

static void *taken(size_t size, int is_clear) {
    if (size > SIZE_MAX / 2) return 0;
    size_t room = size;
    const size_t number = size_number(&room);
    lock();
    size_t fit = number;  // the smallest size that is there, up to the double
    while (!free_blocks[fit] && fit < number + PARTS) fit++;
    block *b = free_blocks[fit];
    if (b) {
        free_blocks[fit] = b->next;
        kept -= b->room;
    }
    unlock();
    if (b) {
        void *data = (char *)b + LINE;
        return is_clear ? memset(data, 0, size) : data;
    }
    b = made(room, is_clear);
    return b ? (char *)b + LINE : 0;
}

static void given_back(void *data) {
    block *b = head_of(data), *rest = 0;
    size_t room = b->room;
    const size_t number = size_number(&room);
    lock();
    if (room > MOST) {
        b->next = 0;
        rest = b;
    } else {
        rest = displaced(room);
        b->next = free_blocks[number];
        free_blocks[number] = b;
        kept += room;
    }
    unlock();
    let_go(rest);
}

static void *own_malloc(void *context, size_t size) {
    (void)context;
    return size < LEAST ? before->malloc(before->context, size) : taken(size, 0);
}

static void *own_calloc(void *context, size_t count, size_t each) {
    (void)context;
    size_t size;
    if (__builtin_mul_overflow(count, each, &size)) return 0;
    return size < LEAST ? before->calloc(before->context, count, each) : taken(size, 1);
}

static void own_free(void *context, void *data, size_t size) {
    (void)context;
    if (size >= LEAST && is_ours(data))
        given_back(data);
    else
        before->free(before->context, data, size);
}

// Data stay in their block while they fill half of it; smaller ones leave it to others.
static void *own_realloc(void *context, void *data, size_t size) {
    if (!is_ours(data)) return before->realloc(before->context, data, size);
    const size_t room = head_of(data)->room;
    if (size >= LEAST && size <= room && size >= room / 2) return data;
    void *other = own_malloc(context, size);
    if (!other) return 0;
    memcpy(other, data, size < room ? size : room);
    given_back(data);
    return other;
}

static handler own = {
    "burnish_allocator", 1, {0, own_malloc, own_calloc, own_realloc, own_free}};

// The allocator that keeps memory, in front of another one.
void *memory_handler(const handler *other) {
    before = &other->allocator;
    return &own;
}

// Gives all that is kept back to the system.
void memory_release(void) {
    lock();
    block *row = displaced(MOST);
    unlock();
    let_go(row);
}
