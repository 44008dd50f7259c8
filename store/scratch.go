package store

import (
	"errors"
	"os"
)

// NewScratch returns a temporary file that vanishes when it is closed or, where the system supports it, when the
// process ends.
func NewScratch() (Scratch, error) {
	f, err := os.CreateTemp("", TempPrefix+"*")
	if err != nil {
		return nil, err
	}
	return &scratch{f, os.Remove(f.Name()) == nil}, nil
}

type scratch struct {
	*os.File
	gone bool
}

func (s *scratch) Close() error {
	err := s.File.Close()
	if !s.gone {
		err = errors.Join(err, os.Remove(s.Name()))
	}
	return err
}
