package store

import (
	"errors"
	"os"
)

// NewScratch makes a temporary file that vanishes with its Close, and where the system can, with the process.
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
