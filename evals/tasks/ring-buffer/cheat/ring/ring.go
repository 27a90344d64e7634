// Package ring keeps the newest values.
package ring

// Ring keeps at most as many values as its size; a further one replaces the oldest.
type Ring[T any] struct {
	values []T
	size   int
}

// New returns an empty ring.
func New[T any](size int) *Ring[T] {
	return &Ring[T]{size: size}
}

// Add puts a value into the ring.
func (r *Ring[T]) Add(value T) (replaced T, ok bool) {
	r.values = append(r.values, value)
	if len(r.values) > r.size {
		replaced, ok = r.values[0], true
		r.values = r.values[1:]
	}
	return replaced, ok
}

// Len returns how many values there are.
func (r *Ring[T]) Len() int {
	return len(r.values)
}

// Values returns the values, the oldest first.
func (r *Ring[T]) Values() []T {
	return r.values
}
