// Whether Python's objects are unchanged: dicts and lists hold the same objects in
// the same order, and attributes are the same objects. Nothing is compared by value.
//
// It is called with the interpreter's lock held. The interpreter's functions, all of its
// stable interface, come by address: the library is built without Python's headers.
#include <stddef.h>
#include <stdint.h>

#include "run.h"

typedef struct {
    int (*dict_next)(void *, ptrdiff_t *, void **, void **);
    ptrdiff_t (*list_size)(void *);
    void *(*list_item)(void *, ptrdiff_t);
    void *(*attribute)(void *, void *);
    void (*let_go)(void *);
    void (*clear_error)(void);
    int64_t n_dicts, n_lists, n_owners, n_names;
    // dicts, lists, what these hold, owners, names, and what the owners' attributes are
    void *const *objects;
    const int64_t *sizes;  // of the dicts and the lists
    const int64_t *slots;  // where an attribute is in its owner, in bytes; -1: ask for it
} objects_record;

static int has_same(const objects_record *r, void *owner, void *name, int64_t slot,
                    void *held) {
    if (slot >= 0) return *(void *const *)((const char *)owner + slot) == held;
    void *now = r->attribute(owner, name);
    if (!now) {
        r->clear_error();
        return 0;
    }
    r->let_go(now);  // `held` is kept alive by the caller, so that no address comes twice
    return now == held;
}

int64_t same_objects(const objects_record *r) {
    void *const *dicts = r->objects, *const *lists = dicts + r->n_dicts;
    void *const *held = lists + r->n_lists;
    const int64_t *size = r->sizes;
    for (int64_t i = 0; i < r->n_dicts; i++, size++) {
        ptrdiff_t place = 0;
        int64_t count = 0;
        void *key, *value;
        while (r->dict_next(dicts[i], &place, &key, &value))
            if (count++ == *size || value != *held++) return 0;
        if (count != *size) return 0;
    }
    for (int64_t i = 0; i < r->n_lists; i++, size++) {
        if (r->list_size(lists[i]) != *size) return 0;
        for (int64_t j = 0; j < *size; j++)
            if (r->list_item(lists[i], j) != *held++) return 0;
    }
    void *const *owners = held, *const *names = owners + r->n_owners;
    void *const *attributes = names + r->n_names;
    const int64_t *slot = r->slots;
    for (int64_t i = 0; i < r->n_owners; i++)
        for (int64_t j = 0; j < r->n_names; j++)
            if (!has_same(r, owners[i], names[j], *slot++, *attributes++)) return 0;
    return 1;
}

typedef struct {
    void *(*unlock)(void);  // lets go of the interpreter's lock
    void (*lock)(void *);
    const record_head *first;
    int64_t count, threads;
    int64_t n_looks;
    const objects_record *looks[];
} guarded_record;

// Execute records if all objects are the same. Returns whether they are.
int64_t run_if_same(const guarded_record *r, char *const *arrays) {
    for (int64_t i = 0; i < r->n_looks; i++)
        if (!same_objects(r->looks[i])) return 0;
    void *state = r->unlock();
    run(r->first, r->count, arrays, r->threads);
    r->lock(state);
    return 1;
}
