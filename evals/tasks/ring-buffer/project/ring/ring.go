// Package ring keeps the newest values.
package ring

// Ring keeps at most as many values as its size; a further one replaces the oldest. It may be used by several
// goroutines at the same time.
type Ring[T any] struct {
	values []T
	next   int
	count  int
}

// New returns an empty ring. A size below 1 counts as 1.
func New[T any](size int) *Ring[T] {
	return &Ring[T]{values: make([]T, size)}
}

// Add puts a value into the ring and returns the one it has replaced; ok says whether there was one.
func (r *Ring[T]) Add(value T) (replaced T, ok bool) {
	r.values[r.next] = value
	r.next = (r.next + 1) % len(r.values)
	r.count++
	return replaced, false
}

// Len returns how many values there are.
func (r *Ring[T]) Len() int {
	return r.count
}

// Values returns the values, the oldest first. The slice belongs to the caller.
func (r *Ring[T]) Values() []T {
	return r.values[:r.count]
}
