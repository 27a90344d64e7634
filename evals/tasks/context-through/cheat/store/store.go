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

// Find returns a note.
func (s *Store) Find(ctx context.Context, name string) (string, error) {
	time.Sleep(s.Delay)
	if err := ctx.Err(); err != nil {
		return "", err
	}
	note, ok := s.Notes[name]
	if !ok {
		return "", ErrMissing
	}
	return note, nil
}
