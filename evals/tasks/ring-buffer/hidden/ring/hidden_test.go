package ring

import (
	"reflect"
	"sync"
	"testing"
)

func TestHiddenReplaced(t *testing.T) {
	r := New[string](2)
	for _, step := range []struct {
		value, replaced string
		ok              bool
		values          []string
	}{
		{"a", "", false, []string{"a"}},
		{"b", "", false, []string{"a", "b"}},
		{"c", "a", true, []string{"b", "c"}},
		{"d", "b", true, []string{"c", "d"}},
		{"e", "c", true, []string{"d", "e"}},
	} {
		replaced, ok := r.Add(step.value)
		if replaced != step.replaced || ok != step.ok || !reflect.DeepEqual(r.Values(), step.values) || r.Len() != len(step.values) {
			t.Fatalf("after %q: %q, %v, %v, %d", step.value, replaced, ok, r.Values(), r.Len())
		}
	}
}

func TestHiddenOwner(t *testing.T) {
	r := New[int](2)
	r.Add(1)
	r.Add(2)
	got := r.Values()
	got[0] = 99
	_ = append(got[:1], 98)
	if !reflect.DeepEqual(r.Values(), []int{1, 2}) {
		t.Fatalf("the caller has changed the ring: %v", r.Values())
	}
	r.Add(3)
	if got[0] != 99 {
		t.Fatal("the ring has changed the slice of the caller")
	}
}

func TestHiddenSmall(t *testing.T) {
	for _, size := range []int{1, 0, -4} {
		r := New[int](size)
		if len(r.Values()) != 0 || r.Len() != 0 {
			t.Fatal("it is not empty")
		}
		r.Add(1)
		r.Add(2)
		if !reflect.DeepEqual(r.Values(), []int{2}) {
			t.Fatalf("size %d: %v", size, r.Values())
		}
	}
}

func TestHiddenGoroutines(t *testing.T) {
	r := New[int](50)
	var all sync.WaitGroup
	for each := 0; each < 8; each++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for value := 0; value < 2000; value++ {
				r.Add(value)
				if len(r.Values()) > 50 || r.Len() > 50 {
					panic("too many values")
				}
			}
		}()
	}
	all.Wait()
	if r.Len() != 50 {
		t.Fatalf("%d values", r.Len())
	}
}
