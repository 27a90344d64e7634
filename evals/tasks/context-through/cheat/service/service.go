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
		note, err := s.Store.Find(ctx, name)
		if err != nil {
			return "", err
		}
		line, _, _ := strings.Cut(note, "\n")
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}
