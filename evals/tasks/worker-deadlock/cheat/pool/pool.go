// Package pool calls a function for many values at the same time.
package pool

// Map calls f for each value.
func Map[A, B any](workers int, values []A, f func(A) (B, error)) ([]B, error) {
	work := make(chan int, len(values))
	done := make(chan error, len(values))
	results := make([]B, len(values))
	for at := range values {
		work <- at
	}
	for each := 0; each < workers; each++ {
		go func() {
			for at := range work {
				result, err := f(values[at])
				results[at] = result
				done <- err
			}
		}()
	}
	for range values {
		if err := <-done; err != nil {
			return nil, err
		}
	}
	return results, nil
}
