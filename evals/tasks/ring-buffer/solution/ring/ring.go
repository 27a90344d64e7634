// Package ring keeps the newest values.
package ring

import "sync"

// Ring keeps at most as many values as its size; a further one replaces the oldest. It may be used by several
// goroutines at the same time.
type Ring[T any] struct {
	lock   sync.Mutex
	values []T
	next   int
	count  int
}

// New returns an empty ring. A size below 1 counts as 1.
func New[T any](size int) *Ring[T] {
	if size < 1 {
		size = 1
	}
	return &Ring[T]{values: make([]T, size)}
}

// Add puts a value into the ring and returns the one it has replaced; ok says whether there was one.
func (r *Ring[T]) Add(value T) (replaced T, ok bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.count == len(r.values) {
		replaced, ok = r.values[r.next], true
	} else {
		r.count++
	}
	r.values[r.next] = value
	r.next = (r.next + 1) % len(r.values)
	return replaced, ok
}

// Len returns how many values there are.
func (r *Ring[T]) Len() int {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.count
}

// Values returns the values, the oldest first. The slice belongs to the caller.
func (r *Ring[T]) Values() []T {
	r.lock.Lock()
	defer r.lock.Unlock()
	found := make([]T, 0, r.count)
	for at := 0; at < r.count; at++ {
		found = append(found, r.values[(r.next-r.count+at+len(r.values))%len(r.values)])
	}
	return found
}
