// Package pool calls a function for many values at the same time.
package pool

import "sync"

// Map calls f for each value, with at most workers calls at the same time (at least one), and returns the results in the
// order of the values. After the first error no further call begins; Map waits for those that run and returns it.
func Map[A, B any](workers int, values []A, f func(A) (B, error)) ([]B, error) {
	if workers < 1 {
		workers = 1
	}
	if workers > len(values) {
		workers = len(values)
	}
	results := make([]B, len(values))
	var lock sync.Mutex
	var first error
	next := 0
	take := func() (int, bool) {
		lock.Lock()
		defer lock.Unlock()
		if first != nil || next == len(values) {
			return 0, false
		}
		next++
		return next - 1, true
	}
	var running sync.WaitGroup
	for each := 0; each < workers; each++ {
		running.Add(1)
		go func() {
			defer running.Done()
			for at, ok := take(); ok; at, ok = take() {
				result, err := f(values[at])
				results[at] = result
				if err != nil {
					lock.Lock()
					if first == nil {
						first = err
					}
					lock.Unlock()
				}
			}
		}()
	}
	running.Wait()
	if first != nil {
		return nil, first
	}
	return results, nil
}
