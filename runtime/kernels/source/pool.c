// The threads, and the interpreter: `run` executes a table of records.
//
// Scheduling is by tickets. One word holds the current record and which of its shares
// are taken; the thread that finishes the last share publishes the next record. No thread
// waits for a sleeping one: a share that it does not take is taken by another.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "dot.h"
#include "call.h"
#include "run.h"
#include "table.h"

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("yield")
#else
#define PAUSE() (void)0
#endif

enum {
    MOST_SHARES = 32,
    MOST_THREADS = 64,
    SPINS = 4000,   // looks for work before a thread sleeps
    PATIENCE = 200  // looks before it lets others run
};

// The word: epoch (14 bits), shares (6), record (12), and the mask of shares taken (32).
static const uint64_t IDLE = 0xfff;
static _Atomic uint64_t word = 0xfffull << 32;
static atomic_int generation, sleepers, done, leaving;
static int threads = 1;
static int born;  // the generation in which the pool's threads were made
static pid_t owner;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static const record_head *volatile table;
static volatile int64_t length;
static const call *volatile given;

static const record_head *record_at(const record_head *t, int64_t i) {
    return (const record_head *)((const char *)t + i * RECORD_BYTES);
}

static uint64_t published(uint64_t epoch, int64_t i) {
    int64_t shares = record_at(table, i)->shares;
    if (shares < 1) shares = 1;
    if (shares > MOST_SHARES) shares = MOST_SHARES;
    return epoch << 50 | (uint64_t)shares << 44 | (uint64_t)i << 32;
}

#ifdef __linux__
static void sleep_while(int seen) {
    syscall(SYS_futex, &generation, FUTEX_WAIT_PRIVATE, seen, 0, 0, 0);
}
static void wake(void) {
    syscall(SYS_futex, &generation, FUTEX_WAKE_PRIVATE, MOST_THREADS, 0, 0, 0);
}
#else
static pthread_mutex_t bed = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
static void sleep_while(int seen) {
    pthread_mutex_lock(&bed);
    while (atomic_load(&generation) == seen) pthread_cond_wait(&bell, &bed);
    pthread_mutex_unlock(&bed);
}
static void wake(void) {
    pthread_mutex_lock(&bed);
    pthread_cond_broadcast(&bell);
    pthread_mutex_unlock(&bed);
}
#endif

// Take shares until the table is through, or, a worker, until there is nothing to take.
static void work(int thread, int is_caller) {
    int looks = 0;
    for (;;) {
        uint64_t w = atomic_load_explicit(&word, memory_order_acquire);
        const int64_t i = w >> 32 & 0xfff, shares = w >> 44 & 63;
        if ((uint64_t)i == IDLE) return;
        const uint32_t every = shares == 32 ? ~0u : (1u << shares) - 1;
        const uint32_t free_ones = every & ~(uint32_t)w;
        if (!free_ones) {
            PAUSE();
            if (++looks > PATIENCE) sched_yield();
            if (!is_caller && looks > SPINS) return;
            continue;
        }
        const uint32_t own = free_ones & ~((1u << thread * shares / threads) - 1);
        const int share = __builtin_ctz(own ? own : free_ones);
        if (!atomic_compare_exchange_weak_explicit(&word, &w, w | 1u << share,
                                                   memory_order_acq_rel,
                                                   memory_order_relaxed))
            continue;
        looks = 0;
        const record_head *r = record_at(table, i);
        KERNEL_TABLE[r->kind](r, given, share, shares);
        if (atomic_fetch_add_explicit(&done, 1, memory_order_acq_rel) + 1 < shares)
            continue;
        atomic_store_explicit(&done, 0, memory_order_relaxed);
        const uint64_t epoch = w >> 50;
        atomic_store_explicit(
            &word, i + 1 == length ? epoch << 50 | IDLE << 32 : published(epoch, i + 1),
            memory_order_release);
    }
}

static void *worker(void *number) {
    const int thread = (int)(intptr_t)number;
    int seen = born;  // not its current value: the pool may have been told to quit
    for (;;) {
        int looks = 0;
        work(thread, 0);
        while (atomic_load_explicit(&generation, memory_order_acquire) == seen) {
            if (looks++ < SPINS) {
                PAUSE();
                if (looks % 256 == 0) sched_yield();
                continue;
            }
            atomic_fetch_add(&sleepers, 1);
            sleep_while(seen);
            atomic_fetch_sub(&sleepers, 1);
        }
        seen = atomic_load(&generation);
        if (atomic_load(&leaving)) {
            atomic_fetch_sub(&leaving, 1);
            return 0;
        }
    }
}

// In a child of a fork the pool's threads are not there: begin anew.
static void after_fork(void) {
    threads = 1;
    atomic_store(&generation, 0);
    atomic_store(&sleepers, 0);
    atomic_store(&done, 0);
    atomic_store(&leaving, 0);
    atomic_store(&word, IDLE << 32);
    owner = getpid();
}

static void resize(int count) {
    if (count > MOST_THREADS) count = MOST_THREADS;
    if (threads > 1) {
        atomic_store(&leaving, threads - 1);
        atomic_fetch_add(&generation, 1);
        wake();
        while (atomic_load(&leaving)) sched_yield();
    }
    threads = 1;
    born = atomic_load(&generation);
    for (int t = 1; t < count; t++) {
        pthread_t made;
        if (pthread_create(&made, 0, worker, (void *)(intptr_t)t)) break;
        pthread_detach(made);
        threads++;
    }
}

static void run_alone(const record_head *t, int64_t n, const call *c) {
    for (int64_t i = 0; i < n; i++) {
        const record_head *r = record_at(t, i);
        KERNEL_TABLE[r->kind](r, c, 0, 1);
    }
}

// A child of a fork inherits a lock that its parent's thread held.
static void locked_by_nobody(void) { pthread_mutex_init(&turn, 0); }

__attribute__((constructor)) static void prepare(void) {
    owner = getpid();
    pthread_atfork(0, 0, locked_by_nobody);
}

void run(const record_head *t, int64_t n, char *const *arrays, int64_t count) {
    const call c = {arrays};
    if (n == 0) return;
    if (count < 2 || pthread_mutex_trylock(&turn)) {
        run_alone(t, n, &c);
        return;
    }
    if (owner != getpid()) after_fork();
    if (threads != count) resize((int)count);
    table = t;
    length = n;
    given = &c;
    const uint64_t epoch = ((atomic_load(&word) >> 50) + 1) & 0x3fff;
    atomic_store_explicit(&word, published(epoch, 0), memory_order_release);
    atomic_fetch_add_explicit(&generation, 1, memory_order_seq_cst);
    if (atomic_load(&sleepers)) wake();
    work(0, 1);
    pthread_mutex_unlock(&turn);
}

int64_t vector_width(void) { return WIDTH; }
int64_t sums_bytes(void) { return HAS_DOT; }
