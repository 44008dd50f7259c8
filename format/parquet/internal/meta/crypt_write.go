package meta

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"slices"

	"stoa/internal/thrift"
)

// MostOrdinal is how many row groups, columns, and data pages of a chunk can have a place in what is authenticated: it
// has 16 bits for each, which some readers take for a signed number.
const MostOrdinal = 1<<15 - 1

// uniqueSize is how many bytes tell a file from all others that are encrypted with the same key.
const uniqueSize = 8

// NewAlgorithm is that of a new file. stored: the AAD prefix stands in the file; else readers have to know it.
func NewAlgorithm(ctr bool, prefix []byte, stored bool) *Algorithm {
	a := &Algorithm{ctr: ctr, Known: true, unique: make([]byte, uniqueSize)}
	_, _ = rand.Read(a.unique) // it never fails
	if stored {
		a.prefix = prefix
	} else {
		a.supply = prefix != nil
	}
	return a
}

// Write writes an EncryptionAlgorithm.
func (a *Algorithm) Write(t *thrift.Writer, id int16) {
	t.Struct(id)
	if a.ctr {
		t.Struct(2)
	} else {
		t.Struct(1)
	}
	if a.prefix != nil {
		t.Bytes(1, a.prefix)
	}
	t.Bytes(2, a.unique)
	if a.supply {
		t.Bool(3, true)
	}
	t.End()
	t.End()
}

// Write writes a ColumnCryptoMetaData, of the column at path.
func (c *ChunkCrypto) Write(t *thrift.Writer, id int16, path []string) {
	t.Struct(id)
	if !c.Own {
		t.Struct(1)
		t.End()
		t.End()
		return
	}
	t.Struct(2)
	t.List(1, thrift.Bytes, len(path))
	for _, p := range path {
		t.String(thrift.Item, p)
	}
	if len(c.Id) > 0 {
		t.Bytes(2, c.Id)
	}
	t.End()
	t.End()
}

// Seal appends what Open opens.
func (s *Sealed) Seal(dst, plain []byte, m Module, data int) []byte {
	ctr := s.Ctr && (m == DataModule || m == DictionaryModule)
	n := nonceSize + len(plain)
	if !ctr {
		n += tagSize
	}
	dst = slices.Grow(dst, 4+n)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	var nonce [nonceSize]byte
	_, _ = rand.Read(nonce[:])
	dst = append(dst, nonce[:]...)
	if !ctr {
		return s.aead.Seal(dst, nonce[:], plain, s.aadOf(m, data))
	}
	var iv [aes.BlockSize]byte
	copy(iv[:], nonce[:])
	iv[aes.BlockSize-1] = 1
	at := len(dst)
	dst = append(dst, plain...)
	cipher.NewCTR(s.block, iv[:]).XORKeyStream(dst[at:], dst[at:])
	return dst
}

// SealedSize is how many bytes a module has that is not the body of a page, of n plain ones.
func SealedSize(n int64) int64 { return 4 + nonceSize + n + tagSize }

// Sign is the signature of a plain footer: nonce and tag.
func (s *Sealed) Sign(footer []byte) []byte {
	whole := s.Seal(nil, footer, FooterModule, 0)
	return append(whole[4:4+nonceSize:4+nonceSize], whole[len(whole)-tagSize:]...)
}

// Footer is the key of the footer; nil: there is none.
func (k *Keyring) Footer() []byte { return k.footer }

// Prefix is the AAD prefix; nil: there is none.
func (k *Keyring) Prefix() []byte { return k.prefix }

// Columns are the keys of columns, by path.
func (k *Keyring) Columns() map[string][]byte { return k.columns }

// ID is what a file has for the name of a key: that of a line `key ID KEY` with the same key; nil: there is none.
func (k *Keyring) ID(key []byte) (id []byte) {
	for name, same := range k.ids {
		if string(same) == string(key) && (id == nil || name < string(id)) {
			id = []byte(name)
		}
	}
	return id
}
