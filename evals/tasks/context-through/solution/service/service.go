// Package service sums up notes.
package service

import (
	"context"
	"strings"

	"example.org/notes/store"
)

// Service answers questions about notes.
type Service struct {
	Store *store.Store
}

// Summary returns the first lines of the notes.
func (s *Service) Summary(ctx context.Context, names ...string) (string, error) {
	var lines []string
	for _, name := range names {
		line, err := s.first(ctx, name)
		if err != nil {
			return "", err
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}

func (s *Service) first(ctx context.Context, name string) (string, error) {
	note, err := s.Store.Find(ctx, name)
	line, _, _ := strings.Cut(note, "\n")
	return line, err
}
