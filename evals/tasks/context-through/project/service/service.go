// Package service sums up notes.
package service

import (
	"strings"

	"example.org/notes/store"
)

// Service answers questions about notes.
type Service struct {
	Store *store.Store
}

// Summary returns the first lines of the notes.
func (s *Service) Summary(names ...string) (string, error) {
	var lines []string
	for _, name := range names {
		line, err := s.first(name)
		if err != nil {
			return "", err
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}

func (s *Service) first(name string) (string, error) {
	note, err := s.Store.Find(name)
	line, _, _ := strings.Cut(note, "\n")
	return line, err
}
