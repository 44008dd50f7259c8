//go:build interop

package kudu

import "errors"

// All that these tests know of stoa's writers is in this file.

type fileOptions struct {
	Version     int // 1 or 2
	NoChecksums bool
	IndexBlock  int // 0: the writer's default
	ValueIndex  bool
}

var errNone = errors.New("there is no writer yet")

func writeColumn(c column, o fileOptions, cells []cell) ([]byte, error) { return nil, errNone }

func writeBloom(keys [][]byte, o fileOptions) ([]byte, error) { return nil, errNone }

func writeAdhocIndex(keys [][]byte, o fileOptions) ([]byte, error) { return nil, errNone }

func writeDelta(undo bool, entries []change, o fileOptions) ([]byte, error) { return nil, errNone }
