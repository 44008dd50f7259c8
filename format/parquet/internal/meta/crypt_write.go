package meta

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"slices"

	"stoa/internal/thrift"
)

// MaxOrdinal bounds the number of row groups, of columns, and of data pages in a chunk that can be authenticated by
// position: each ordinal has 16 bits, which some readers interpret as signed.
const MaxOrdinal = 1<<15 - 1

// uniqueSize is the number of random bytes that distinguish a file from others encrypted with the same key.
const uniqueSize = 8

// NewAlgorithm returns the algorithm of a new file. If stored is false, the AAD prefix is not written to the file and
// readers have to supply it.
func NewAlgorithm(ctr bool, prefix []byte, stored bool) *Algorithm {
	a := &Algorithm{ctr: ctr, Known: true, unique: make([]byte, uniqueSize)}
	_, _ = rand.Read(a.unique) // never fails
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

// Write writes the ColumnCryptoMetaData of the column at path.
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
	if len(c.ID) > 0 {
		t.Bytes(2, c.ID)
	}
	t.End()
	t.End()
}

// Encrypt appends plain as an encrypted module to dst.
func (s *Cipher) Encrypt(dst, plain []byte, m Module, data int) []byte {
	ctr := s.CTR && (m == DataModule || m == DictionaryModule)
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

// EncryptedSize returns the length of a module with n bytes of plaintext that is not a page body.
func EncryptedSize(n int64) int64 { return 4 + nonceSize + n + tagSize }

// Sign returns the signature of a plaintext footer: nonce and tag.
func (s *Cipher) Sign(footer []byte) []byte {
	whole := s.Encrypt(nil, footer, FooterModule, 0)
	return append(whole[4:4+nonceSize:4+nonceSize], whole[len(whole)-tagSize:]...)
}

// Footer returns the footer key; nil if none was supplied.
func (k *Keyring) Footer() []byte { return k.footer }

// Prefix returns the AAD prefix; nil if none was supplied.
func (k *Keyring) Prefix() []byte { return k.prefix }

// Columns returns the column keys by path.
func (k *Keyring) Columns() map[string][]byte { return k.columns }

// ID returns the name by which a file refers to a key: the ID of a line `key ID KEY` with the same key; nil if there is
// none.
func (k *Keyring) ID(key []byte) (id []byte) {
	for name, same := range k.ids {
		if string(same) == string(key) && (id == nil || name < string(id)) {
			id = []byte(name)
		}
	}
	return id
}
