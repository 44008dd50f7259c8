package write

import (
	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
)

// encryption is the encryption of a file; nil if there is none.
type encryption struct {
	keys         *meta.Keyring
	algorithm    *meta.Algorithm
	plain        map[string]bool // columns that are not encrypted
	found        map[string]bool // columns of the schema
	signed       bool            // the footer is plaintext and signed
	footerCipher *meta.Cipher    // uses the footer's key
}

// chunkCipher is the encryption of the chunks of one column.
type chunkCipher struct {
	crypto  *meta.ChunkCrypto // nil if they are not encrypted
	base    *meta.Cipher
	current *meta.Cipher // of the row group that is being filled
	head    []byte       // of the page that is being finished
	body    []byte       // of that page, contiguous
	out     []byte       // the same, encrypted
}

// newEncryption encrypts with the keys of a key file. If stored is false, the AAD prefix is not written to the file.
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
	e.footerCipher, err = meta.NewCipher(keys.Footer(), e.algorithm, keys)
	return e, err
}

// column returns the cipher of column i: of its own key or the footer's.
func (e *encryption) column(name string, i int) (s chunkCipher, err error) {
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
	s.crypto, s.base = &meta.ChunkCrypto{}, e.footerCipher
	if key != nil {
		s.crypto = &meta.ChunkCrypto{Own: true, ID: e.keys.ID(key)}
		if s.base, err = meta.NewCipher(key, e.algorithm, e.keys); err != nil {
			return s, err
		}
	}
	s.begin(0, i)
	return s, nil
}

// check refuses names that are not columns: otherwise the file would not be encrypted as intended.
func (e *encryption) check() error {
	if e == nil {
		return nil
	}
	if n := len(e.found); n > meta.MaxOrdinal {
		return fault.Limitf(fault.Span{}, "", "%s: an encrypted file has %d at most", fault.Count(n, "column"),
			meta.MaxOrdinal)
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

// begin must be called at the start of each row group.
func (s *chunkCipher) begin(group, column int) {
	if s.crypto != nil {
		s.current = s.base.ForChunk(group, column)
	}
}

// magic returns the bytes at the beginning and end of the file.
func (e *encryption) magic() string {
	if e != nil && !e.signed {
		return meta.Encrypted
	}
	return meta.Magic
}

// full reports whether a chunk of the given number of pages could run out of ordinals before the next call, which comes
// after at most more pages.
func (s *chunkCipher) full(pages, more int) bool {
	return s.crypto != nil && pages+more > meta.MaxOrdinal
}

// page encrypts the body of data page number data. The body is passed and returned as two pieces.
func (s *chunkCipher) page(stored, more []byte, m meta.Module, data int) (one, two []byte) {
	if s.current == nil {
		return stored, more
	}
	if len(stored) > 0 {
		s.body = append(append(s.body[:0], stored...), more...)
		more = s.body
	}
	s.out = s.current.Encrypt(s.out[:0], more, m, data)
	return nil, s.out
}

// header returns the header of a page, encrypted if necessary.
func (s *chunkCipher) header(b []byte, m meta.Module, data int) []byte {
	if s.current == nil {
		return b
	}
	s.head = s.current.Encrypt(s.head[:0], b, m, data)
	return s.head
}

// encryptModule returns a module of a chunk, encrypted by s unless that is nil.
func encryptModule(s *meta.Cipher, b []byte, m meta.Module) []byte {
	if s == nil {
		return b
	}
	return s.Encrypt(nil, b, m, 0)
}

// wrap returns the footer in its final form: signed, or encrypted and preceded by the FileCryptoMetaData.
func (e *encryption) wrap(footer []byte) []byte {
	switch {
	case e == nil:
		return footer
	case e.signed:
		return append(footer[:len(footer):len(footer)], e.footerCipher.Sign(footer)...)
	}
	t := thrift.NewWriter(thrift.Compact)
	t.Struct(thrift.Item)
	e.algorithm.Write(t, 1)
	if id := e.keys.ID(e.keys.Footer()); id != nil {
		t.Bytes(2, id)
	}
	t.End()
	return e.footerCipher.Encrypt(t.Encoded(), footer, meta.FooterModule, 0)
}

// fields writes the fields of a signed footer that describe the signature.
func (e *encryption) fields(t *thrift.Writer) {
	if e == nil || !e.signed {
		return
	}
	e.algorithm.Write(t, 8)
	if id := e.keys.ID(e.keys.Footer()); id != nil {
		t.Bytes(9, id)
	}
}
