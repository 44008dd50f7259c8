// Command pqgo prints the rows of a Parquet file as parquet-go reads them, one JSON object a line.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
)

func main() {
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(name string, to io.Writer) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	file, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return err
	}
	w := bufio.NewWriter(to)
	defer w.Flush()
	r := parquet.NewGenericReader[any](file)
	defer r.Close()
	rows := make([]any, 64)
	for {
		n, err := r.Read(rows)
		for _, row := range rows[:n] {
			b, err := json.Marshal(row)
			if err != nil {
				return err
			}
			w.Write(append(b, '\n'))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
