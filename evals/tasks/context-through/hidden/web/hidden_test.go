package web

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"example.org/notes/service"
	"example.org/notes/store"
)

var notes = map[string]string{"a": "one\ntwo", "b": "three"}

func ask(ctx context.Context, delay time.Duration, names string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "/?notes="+names, nil).WithContext(ctx)
	Handler(&service.Service{Store: &store.Store{Notes: notes, Delay: delay}}).ServeHTTP(answer, request)
	return answer
}

func TestHiddenAnswers(t *testing.T) {
	answer := ask(context.Background(), 0, "a,b")
	if answer.Code != 200 || answer.Body.String() != "one\nthree\n" {
		t.Fatal(answer.Code, answer.Body)
	}
	if answer := ask(context.Background(), 0, "a,x"); answer.Code != 404 {
		t.Fatal(answer.Code)
	}
}

func TestHiddenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	began := time.Now()
	if answer := ask(ctx, time.Minute, "a,b"); answer.Code != 503 || time.Since(began) > 10*time.Second {
		t.Fatal(answer.Code, time.Since(began))
	}
	if answer := ask(ctx, 0, "a"); answer.Code != 503 {
		t.Fatal("a context that has ended finds a note", answer.Code)
	}
}

func TestHiddenErrors(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	s := &service.Service{Store: &store.Store{Notes: notes, Delay: time.Minute}}
	if _, err := s.Summary(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if _, err := s.Store.Find(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}
