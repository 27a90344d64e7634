package pool

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func isQuiet(t *testing.T, before int) {
	t.Helper()
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if runtime.NumGoroutine() <= before {
			return
		}
	}
	t.Fatal("something runs on")
}

func TestHiddenAtOnce(t *testing.T) {
	before := runtime.NumGoroutine()
	var running, most int32
	var gate sync.WaitGroup
	gate.Add(3)
	var entered int32
	values := make([]int, 30)
	got, err := Map(3, values, func(int) (int, error) {
		now := atomic.AddInt32(&running, 1)
		for old := atomic.LoadInt32(&most); now > old && !atomic.CompareAndSwapInt32(&most, old, now); old = atomic.LoadInt32(&most) {
		}
		if atomic.AddInt32(&entered, 1) <= 3 {
			gate.Done()
			gate.Wait()
		}
		atomic.AddInt32(&running, -1)
		return 7, nil
	})
	if err != nil || len(got) != 30 || got[29] != 7 || most != 3 {
		t.Fatal(got, err, most)
	}
	isQuiet(t, before)
}

func TestHiddenError(t *testing.T) {
	before := runtime.NumGoroutine()
	wrong := errors.New("wrong")
	var calls, open int32
	slow := make(chan struct{})
	_, err := Map(2, make([]int, 1000), func(int) (int, error) {
		atomic.AddInt32(&open, 1)
		defer atomic.AddInt32(&open, -1)
		if atomic.AddInt32(&calls, 1) == 1 {
			<-slow
			return 0, nil
		}
		time.AfterFunc(50*time.Millisecond, func() { close(slow) })
		return 0, wrong
	})
	if err != wrong || calls != 2 || atomic.LoadInt32(&open) != 0 {
		t.Fatal(err, calls, open)
	}
	isQuiet(t, before)
}

func TestHiddenEdges(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, workers := range []int{-1, 0, 1, 100} {
		for _, size := range []int{0, 1, 5} {
			got, err := Map(workers, make([]string, size), func(string) (bool, error) { return true, nil })
			if err != nil || len(got) != size || got == nil {
				t.Fatal(workers, size, got, err)
			}
		}
	}
	isQuiet(t, before)
}
