// Package web answers requests.
package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"example.org/notes/service"
	"example.org/notes/store"
)

// Handler answers /?notes=a,b.
func Handler(s *service.Service) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		summary, err := s.Summary(r.Context(), strings.Split(r.URL.Query().Get("notes"), ",")...)
		switch {
		case errors.Is(err, store.ErrMissing):
			http.Error(w, err.Error(), http.StatusNotFound)
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			fmt.Fprintln(w, summary)
		}
	})
}
