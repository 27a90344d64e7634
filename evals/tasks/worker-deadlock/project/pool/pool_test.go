package pool

import (
	"reflect"
	"testing"
)

func TestResultsAreInOrder(t *testing.T) {
	got, err := Map(2, []int{1, 2, 3, 4, 5}, func(value int) (int, error) { return value * value, nil })
	if err != nil || !reflect.DeepEqual(got, []int{1, 4, 9, 16, 25}) {
		t.Fatal(got, err)
	}
}
