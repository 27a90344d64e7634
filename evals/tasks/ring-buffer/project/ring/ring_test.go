package ring

import (
	"reflect"
	"testing"
)

func TestTheNewestValuesStay(t *testing.T) {
	r := New[int](3)
	for value := 1; value <= 4; value++ {
		r.Add(value)
	}
	if got := r.Values(); !reflect.DeepEqual(got, []int{2, 3, 4}) {
		t.Fatalf("values are %v", got)
	}
}
