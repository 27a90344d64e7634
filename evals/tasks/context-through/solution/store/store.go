// Package store has the notes.
package store

import (
	"context"
	"errors"
	"time"
)

// ErrMissing says that there is no such note.
var ErrMissing = errors.New("no such note")

// Store is slow, as stores are: each look takes Delay.
type Store struct {
	Notes map[string]string
	Delay time.Duration
}

// Find returns a note. It gives up with the error of the context when that ends first.
func (s *Store) Find(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	timer := time.NewTimer(s.Delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-timer.C:
	}
	note, ok := s.Notes[name]
	if !ok {
		return "", ErrMissing
	}
	return note, nil
}
