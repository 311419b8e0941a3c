// A record on NumPy's arrays as Python holds them: where their elements are is read from
// the objects.
//
// It is called with the interpreter's lock held. The interpreter's functions, all of its
// stable interface, come by address: the library is built without Python's headers.
#include <stddef.h>
#include <stdint.h>

#include "run.h"

enum { MOST_ARRAYS = 32 };

typedef struct {
    void *(*unlock)(void);  // lets go of the interpreter's lock
    void (*lock)(void *);
    void *(*item)(void *, ptrdiff_t);  // of a tuple
    void *nothing, *type;              // None, and arrays' own type
    int64_t type_at, elements_at;      // where an object has its type, and an array's address
} objects_format;

// Execute a record on a tuple of n arrays, or None for absent ones. Returns whether they
// are that; nothing runs where one is of another type.
int64_t run_on_arrays(const objects_format *f, const record_head *r, void *arrays, int64_t n,
                      int64_t threads) {
    char *places[MOST_ARRAYS];
    if (n > MOST_ARRAYS) return 0;
    for (int64_t i = 0; i < n; i++) {
        char *array = f->item(arrays, i);
        places[i] = 0;
        if (array == f->nothing) continue;
        if (*(void **)(array + f->type_at) != f->type) return 0;
        places[i] = *(char **)(array + f->elements_at);
    }
    void *state = f->unlock();
    run(r, 1, places, threads);
    f->lock(state);
    return 1;
}
