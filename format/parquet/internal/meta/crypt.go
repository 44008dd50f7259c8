package meta

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/internal/thrift"
)

// Modular encryption (parquet-format, Encryption.md). Each page header, each page body, each index, the metadata of a
// chunk and the footer are encrypted as a module:
//
//	AES-GCM      u32 of the length of what follows, nonce (12 bytes), ciphertext, tag (16 bytes)
//	AES-GCM-CTR  of page bodies: the same without a tag, so not authenticated
//
// The position of each module in the file is authenticated with it, so that modules cannot be swapped: AAD prefix, a
// random id of the file, module type, ordinals (i16) of row group, column and data page.

// Module is the type of an encrypted module.
type Module byte

const (
	FooterModule Module = iota
	MetaModule
	DataModule
	DictionaryModule
	DataHeaderModule
	DictionaryHeaderModule
	ColumnIndexModule
	OffsetIndexModule
	BloomHeaderModule
	BloomModule
)

const (
	nonceSize = 12
	tagSize   = 16
	// SignatureSize is the length of the signature after a plaintext footer: nonce and tag.
	SignatureSize = nonceSize + tagSize
)

// Algorithm is EncryptionAlgorithm.
type Algorithm struct {
	ctr    bool // AES_GCM_CTR_V1
	Known  bool
	prefix []byte
	unique []byte
	supply bool // readers have to supply the prefix
}

// CTR reports whether page bodies are encrypted without authentication. Stored reports whether the AAD prefix needs no
// help from the reader: the file contains it, or there is none.
func (a *Algorithm) CTR() bool    { return a.ctr }
func (a *Algorithm) Stored() bool { return !a.supply }

// ParseAlgorithm reads an EncryptionAlgorithm.
func ParseAlgorithm(r *thrift.Reader) (a Algorithm) {
	for r.Struct("encryption_algorithm"); r.Next(); {
		if f := r.Field(); f != 1 && f != 2 || r.Type() != thrift.Struct {
			continue
		}
		a.Known, a.ctr = true, r.Field() == 2
		for r.Struct(map[bool]string{false: "AES_GCM_V1", true: "AES_GCM_CTR_V1"}[a.ctr]); r.Next(); {
			switch r.Field() {
			case 1:
				a.prefix = r.Bytes("aad_prefix")
			case 2:
				a.unique = r.Bytes("aad_file_unique")
			case 3:
				a.supply = r.Bool("supply_aad_prefix")
			}
		}
	}
	return a
}

// ChunkCrypto is ColumnCryptoMetaData: the column has its own key or uses the footer's.
type ChunkCrypto struct {
	Own bool
	ID  []byte // key_metadata
}

func parseChunkCrypto(r *thrift.Reader) *ChunkCrypto {
	c := &ChunkCrypto{}
	for r.Struct("crypto_metadata"); r.Next(); {
		if r.Type() != thrift.Struct {
			continue
		}
		c.Own = r.Field() == 2
		for r.Struct(map[bool]string{false: "ENCRYPTION_WITH_FOOTER_KEY",
			true: "ENCRYPTION_WITH_COLUMN_KEY"}[c.Own]); r.Next(); {
			switch {
			case r.Field() == 1 && c.Own:
				for range r.List("path_in_schema", thrift.Bytes) {
					r.Bytes("")
				}
			case r.Field() == 2 && c.Own:
				c.ID = r.Bytes("key_metadata")
			}
		}
	}
	return c
}

// Cipher encrypts and decrypts the modules of a file, or of one of its column chunks.
type Cipher struct {
	CTR           bool
	aead          cipher.AEAD
	block         cipher.Block
	aad           []byte // prefix and unique id of the file
	group, column int
}

// NewCipher returns a cipher for a file that uses key. keys supplies the AAD prefix if the file does not contain it.
func NewCipher(key []byte, a *Algorithm, keys *Keyring) (*Cipher, error) {
	s := &Cipher{CTR: a.ctr}
	switch {
	case a.supply && keys.prefix == nil:
		return nil, fault.Invalidf(
			"the file was encrypted with an AAD prefix that it does not contain: add a line aad-prefix to the key " +
				"file")
	case a.supply || keys.prefix != nil:
		s.aad = append(s.aad, keys.prefix...)
	default:
		s.aad = append(s.aad, a.prefix...)
	}
	s.aad = append(s.aad, a.unique...)
	var err error
	if s.block, err = aes.NewCipher(key); err != nil {
		return nil, fault.Invalidf("a key of %d bytes: AES keys have 16, 24 or 32", len(key))
	}
	s.aead, err = cipher.NewGCM(s.block)
	return s, err
}

// ForChunk returns the cipher of a column chunk, with the same key.
func (s *Cipher) ForChunk(group, column int) *Cipher {
	out := *s
	out.group, out.column = group, column
	return &out
}

// aadOf returns the additional authenticated data of a module; data is the ordinal of a data page.
func (s *Cipher) aadOf(m Module, data int) []byte {
	aad := append(s.aad[:len(s.aad):len(s.aad)], byte(m))
	if m == FooterModule {
		return aad
	}
	aad = binary.LittleEndian.AppendUint16(aad, uint16(s.group))
	aad = binary.LittleEndian.AppendUint16(aad, uint16(s.column))
	if m == DataModule || m == DataHeaderModule {
		aad = binary.LittleEndian.AppendUint16(aad, uint16(data))
	}
	return aad
}

// ModuleSize returns the length of the module at the start of b, including its length field; 0 if b is too short or is
// not a module.
func ModuleSize(b []byte, overhead int) int {
	if len(b) < 4 {
		return 0
	}
	n := int64(binary.LittleEndian.Uint32(b))
	if n < int64(overhead) || n > int64(len(b)-4) {
		return 0
	}
	return int(4 + n)
}

// Decrypt decrypts the module at the start of b. used is the number of bytes of b that it occupies. data is the ordinal
// of a data page; alloc allocates the result.
func (s *Cipher) Decrypt(b []byte, m Module, data int, alloc func(int) []byte) (plain []byte, used int, err error) {
	ctr := s.CTR && (m == DataModule || m == DictionaryModule)
	overhead := SignatureSize
	if ctr {
		overhead = nonceSize
	}
	if used = ModuleSize(b, overhead); used == 0 {
		return nil, 0, fault.Rel(0, min(4, len(b)), "module.length", "it does not fit into the %d bytes that are there",
			len(b))
	}
	nonce, text := b[4:4+nonceSize], b[4+nonceSize:used]
	plain = alloc(used - 4 - overhead)
	if ctr {
		var iv [aes.BlockSize]byte
		copy(iv[:], nonce)
		iv[aes.BlockSize-1] = 1
		cipher.NewCTR(s.block, iv[:]).XORKeyStream(plain, text)
		return plain, used, nil
	}
	if _, err = s.aead.Open(plain[:0], nonce, text, s.aadOf(m, data)); err != nil {
		return nil, 0, fault.Rel(0, used, "module",
			"it is not authentic: its bytes were changed or moved after they were encrypted")
	}
	return plain, used, nil
}

// VerifySignature reports whether signature is valid for a plaintext footer.
func (s *Cipher) VerifySignature(footer, signature []byte) bool {
	out := s.aead.Seal(nil, signature[:nonceSize], footer, s.aadOf(FooterModule, 0))
	return subtle.ConstantTimeCompare(out[len(footer):], signature[nonceSize:]) == 1
}

// QuotedID formats the metadata of a key for an error message, so that the user can find the key.
func QuotedID(id []byte) string {
	if len(id) == 0 {
		return ""
	}
	if m := masterKey(id); m != "" {
		return " (a key that master key " + strconv.Quote(m) + " wraps)"
	}
	const longest = 200
	s := strings.ToValidUTF8(string(id[:min(len(id), longest)]), "\ufffd")
	return " (key metadata " + strconv.Quote(s) + ")"
}
