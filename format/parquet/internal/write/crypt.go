package write

import (
	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
)

// encryption is how a file is encrypted.
type encryption struct {
	keys      *meta.Keyring
	algorithm *meta.Algorithm
	plain     map[string]bool // columns that stay plain
	found     map[string]bool // columns that are there
	signed    bool            // the footer is plain, and signed
	sealed    *meta.Sealed    // by the footer's key
}

// chunkSeal is how the chunks of one column are encrypted.
type chunkSeal struct {
	crypto *meta.ChunkCrypto // nil: they are not
	base   *meta.Sealed
	now    *meta.Sealed // of the row group that is being filled
	head   []byte       // of a page that is being cut
	body   []byte       // of that page, in one piece
	out    []byte       // the same, encrypted
}

// newEncryption encrypts with the keys of a file. stored: the AAD prefix stands in the file.
func newEncryption(keyFile string, ctr, signed, stored bool, plain []string) (*encryption, error) {
	keys, err := meta.ReadKeyring(keyFile)
	if err != nil {
		return nil, err
	}
	if keys.Footer() == nil {
		return nil, fault.Invalidf("key-file=%s: it has no line footer KEY, and a file is encrypted with such a key",
			keyFile)
	}
	e := &encryption{keys: keys, signed: signed, plain: map[string]bool{}, found: map[string]bool{}}
	for _, c := range plain {
		e.plain[c] = true
	}
	e.algorithm = meta.NewAlgorithm(ctr, keys.Prefix(), stored)
	e.sealed, err = meta.NewSealed(keys.Footer(), e.algorithm, keys)
	return e, err
}

// column gives a column its key: its own, or the footer's.
func (e *encryption) column(name string, i int) (s chunkSeal, err error) {
	if e == nil {
		return s, nil
	}
	key := e.keys.Columns()[name]
	e.found[name] = true
	if e.plain[name] {
		if key != nil {
			err = fault.Invalidf("plain-columns: column %s has a key", name)
		}
		return s, err
	}
	s.crypto, s.base = &meta.ChunkCrypto{}, e.sealed
	if key != nil {
		s.crypto = &meta.ChunkCrypto{Own: true, Id: e.keys.ID(key)}
		if s.base, err = meta.NewSealed(key, e.algorithm, e.keys); err != nil {
			return s, err
		}
	}
	s.begin(0, i)
	return s, nil
}

// check refuses names that no column has: it would be encrypted otherwise than was meant.
func (e *encryption) check() error {
	if e == nil {
		return nil
	}
	if n := len(e.found); n > meta.MostOrdinal {
		return fault.Limitf(fault.Span{}, "", "%d columns: an encrypted file has %d at most", n, meta.MostOrdinal)
	}
	for name := range e.keys.Columns() {
		if !e.found[name] {
			return fault.Invalidf("key-file: there is no column %s", name)
		}
	}
	for name := range e.plain {
		if !e.found[name] {
			return fault.Invalidf("plain-columns=%s: there is no such column", name)
		}
	}
	return nil
}

// begin is for the next row group.
func (s *chunkSeal) begin(group, column int) {
	if s.crypto != nil {
		s.now = s.base.Of(group, column)
	}
}

// magic is what the file begins and ends with.
func (e *encryption) magic() string {
	if e != nil && !e.signed {
		return meta.Encrypted
	}
	return meta.Magic
}

// full reports whether a chunk of so many pages may soon have more than can be told from each other; more is how many
// may come before it is asked again.
func (s *chunkSeal) full(pages, more int) bool {
	return s.crypto != nil && pages+more > meta.MostOrdinal
}

// page encrypts the body of a page, which are two pieces one behind the other; data is its number.
func (s *chunkSeal) page(stored, more []byte, m meta.Module, data int) (one, two []byte) {
	if s.now == nil {
		return stored, more
	}
	if len(stored) > 0 {
		s.body = append(append(s.body[:0], stored...), more...)
		more = s.body
	}
	s.out = s.now.Seal(s.out[:0], more, m, data)
	return nil, s.out
}

// header is the header of a page as it is written.
func (s *chunkSeal) header(b []byte, m meta.Module, data int) []byte {
	if s.now == nil {
		return b
	}
	s.head = s.now.Seal(s.head[:0], b, m, data)
	return s.head
}

// sealed is a module of a chunk as it is written; s, which may be nil, encrypts it.
func sealed(s *meta.Sealed, b []byte, m meta.Module) []byte {
	if s == nil {
		return b
	}
	return s.Seal(nil, b, m, 0)
}

// wrap is the footer as it stands in the file: signed, or encrypted after what says how.
func (e *encryption) wrap(footer []byte) []byte {
	switch {
	case e == nil:
		return footer
	case e.signed:
		return append(footer[:len(footer):len(footer)], e.sealed.Sign(footer)...)
	}
	t := thrift.NewWriter(thrift.Compact)
	t.Struct(thrift.Item)
	e.algorithm.Write(t, 1)
	if id := e.keys.ID(e.keys.Footer()); id != nil {
		t.Bytes(2, id)
	}
	t.End()
	return e.sealed.Seal(t.Encoded(), footer, meta.FooterModule, 0)
}

// fields writes what a signed footer says of itself.
func (e *encryption) fields(t *thrift.Writer) {
	if e == nil || !e.signed {
		return
	}
	e.algorithm.Write(t, 8)
	if id := e.keys.ID(e.keys.Footer()); id != nil {
		t.Bytes(9, id)
	}
}
