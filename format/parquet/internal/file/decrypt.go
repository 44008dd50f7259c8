package file

import (
	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
	"stoa/wire"
)

// decryptFooter returns the Thrift of an encrypted footer: FileCryptoMetaData, then the footer as a module.
func (r *File) decryptFooter(b []byte) ([]byte, error) {
	c := wire.NewCursor(b, r.FooterAt, "footer")
	t := thrift.NewReader(c, thrift.Compact)
	var a meta.Algorithm
	var id []byte
	for t.Struct("crypto_metadata"); t.Next(); {
		switch t.Field() {
		case 1:
			a = meta.ParseAlgorithm(t)
		case 2:
			id = t.Bytes("key_metadata")
		}
	}
	if c.Err() != nil {
		return nil, c.Err()
	}
	at := r.FooterAt.Sub(int64(c.Pos()), int64(c.Left()))
	if !a.Known {
		return nil, fault.Unsupportedf(r.FooterAt, "footer/crypto_metadata",
			"an encryption algorithm other than AES_GCM_V1 and AES_GCM_CTR_V1")
	}
	key := r.keys.FindFooter(id)
	if key == nil {
		return nil, fault.Unsupportedf(at, "footer", "it is encrypted%s, and no key for it is given (option "+
			"key-file=FILE)",
			meta.QuotedID(id))
	}
	s, err := meta.NewCipher(key, &a, r.keys)
	if err != nil {
		return nil, err
	}
	plain, used, err := s.Decrypt(c.Rest(), meta.FooterModule, 0, meta.Alloc)
	if err != nil {
		if meta.ModuleSize(c.Rest(), meta.SignatureSize) == 0 {
			return nil, fault.Locate(err, at, true, "footer")
		}
		return nil, wrongKey(at, "footer", "the footer", id)
	}
	if used != c.Left() {
		return nil, fault.Corruptf(at.Sub(int64(used), at.Len-int64(used)), "footer",
			"%d bytes after the encrypted footer", c.Left()-used)
	}
	r.algorithm, r.footerCipher, r.EncryptedFooter = &a, s, true
	return plain, nil
}

// wrongKey is the error for a module that has the right length but does not decrypt. No cipher can distinguish a wrong
// key from a damaged module, so it is not reported as damage.
func wrongKey(at fault.Span, path, what string, id []byte) error {
	return fault.New(fault.Invalid, at, path,
		"the key given for %s%s does not open it: it is another key (or another AAD prefix), or its bytes were changed",
		what, meta.QuotedID(id))
}

// decryptColumns decrypts the metadata of the columns whose keys were supplied, after verifying the signature of a
// plaintext footer.
func (r *File) decryptColumns(footer []byte) error {
	if a := r.Footer.Algorithm; a != nil { // the footer is plaintext
		if !a.Known {
			return nil // reading a column reports it
		}
		r.algorithm = a
		key := r.keys.FindFooter(r.Footer.Signer)
		if key != nil {
			s, err := meta.NewCipher(key, a, r.keys)
			if err != nil {
				return err
			}
			n := r.Footer.Length
			if len(footer)-n != meta.SignatureSize || !s.VerifySignature(footer[:n], footer[n:]) {
				return wrongKey(r.FooterAt, "footer.signature", "the signature of the footer", r.Footer.Signer)
			}
			r.footerCipher = s
		}
	}
	if r.algorithm == nil {
		return nil
	}
	for g, rg := range r.Footer.RowGroups {
		ordinal := g
		if rg.Ordinal != nil {
			ordinal = int(*rg.Ordinal)
		}
		for k, c := range rg.Columns {
			if c.Crypto == nil || k >= r.Footer.Schema.NumColumns() {
				continue
			}
			if err := r.decryptChunkMeta(c, g, k, ordinal); err != nil {
				return err
			}
		}
	}
	return nil
}

// decryptChunkMeta decrypts the metadata of a chunk if its key is known.
func (r *File) decryptChunkMeta(c *meta.ChunkMeta, group, column, ordinal int) error {
	s := r.footerCipher
	path := r.Footer.Schema.Column(column).Path()
	if c.Crypto.Own {
		key := r.keys.Find(path, c.Crypto.ID)
		if key == nil {
			return nil
		}
		var err error
		if s, err = meta.NewCipher(key, r.algorithm, r.keys); err != nil {
			return err
		}
	}
	if s == nil {
		return nil
	}
	s = s.ForChunk(ordinal, column)
	if c.EncryptedMeta != nil {
		b, _, err := s.Decrypt(c.EncryptedMeta, meta.MetaModule, 0, meta.Alloc)
		if err != nil {
			return wrongKey(r.FooterAt, meta.IndexPath(group, column, "encrypted_column_metadata"), "column "+path,
				c.Crypto.ID)
		}
		cur := wire.NewInnerCursor(b, r.FooterAt, meta.IndexPath(group, column, "encrypted_column_metadata")).
			Within(r.Limits.Memory())
		m := meta.ParseColumnMeta(thrift.NewReader(cur, thrift.Compact))
		if cur.Err() != nil {
			return cur.Err()
		}
		c.MetaData = m
	}
	c.Cipher, c.Encrypted = s, false
	return nil
}
