// Command last prints the last ten lines of its input.
package main

import (
	"bufio"
	"fmt"
	"os"

	"example.org/ring/ring"
)

func main() {
	lines := ring.New[string](10)
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		lines.Add(input.Text())
	}
	for _, line := range lines.Values() {
		fmt.Println(line)
	}
}
