// Package store has the notes.
package store

import (
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
func (s *Store) Find(name string) (string, error) {
	time.Sleep(s.Delay)
	note, ok := s.Notes[name]
	if !ok {
		return "", ErrMissing
	}
	return note, nil
}
