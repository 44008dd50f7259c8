package s3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"

	"github.com/minio/minio-go/v7"

	"stoa/store"
	"stoa/store/remote"
)

// Put writes an object in one request. The signature covers the SHA-256 of the body, which the store verifies.
func (c *client) Put(ctx context.Context, key string, body io.ReadSeeker, n int64, when remote.Condition) (
	remote.Object, error) {
	sum, err := sumOf(body)
	if err != nil {
		return remote.Object{}, err
	}
	opts := minio.PutObjectOptions{DisableContentSha256: true}
	condition(&opts, when)
	info, err := c.api.PutObject(ctx, c.bucket, key, body, n, "", sum, opts)
	if err != nil {
		return remote.Object{}, refused(err, when)
	}
	return remote.Object{Key: key, Size: n, Stamp: info.ETag}, nil
}

// sumOf returns the SHA-256 of a body, and rewinds it.
func sumOf(body io.ReadSeeker) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, body); err != nil {
		return "", err
	}
	_, err := body.Seek(0, io.SeekStart)
	return hex.EncodeToString(h.Sum(nil)), err
}

func condition(opts *minio.PutObjectOptions, when remote.Condition) {
	if when.Absent {
		opts.SetMatchETagExcept("*")
	}
	if when.Stamp != "" {
		opts.SetMatchETag(when.Stamp)
	}
}

// refused converts the error of a conditional write. Status 409 means that another write of the same object is in
// progress: the same request may succeed later, or find the other write's object.
func refused(err error, when remote.Condition) error {
	var e minio.ErrorResponse
	out := reason(err)
	var known *remote.Error
	if !errors.As(err, &e) || !errors.As(out, &known) {
		return out
	}
	switch {
	case e.StatusCode == http.StatusPreconditionFailed && when.Absent:
		known.Kind, known.Again, known.Reason = fs.ErrExist, false, "there is an object of that name"
	case e.StatusCode == http.StatusPreconditionFailed || e.StatusCode == http.StatusNotFound && when.Stamp != "":
		known.Kind, known.Again = store.ErrChanged, false
	case e.StatusCode == http.StatusConflict && when != (remote.Condition{}):
		known.Again = true
	case e.StatusCode == http.StatusNotImplemented && when != (remote.Condition{}):
		known.Kind = errors.ErrUnsupported
	}
	return out
}

// Begin begins an upload in parts.
func (c *client) Begin(ctx context.Context, key string) (string, error) {
	id, err := c.api.NewMultipartUpload(ctx, c.bucket, key, minio.PutObjectOptions{})
	if err != nil {
		return "", reason(err)
	}
	return id, nil
}

// Part writes a part.
func (c *client) Part(ctx context.Context, u remote.Upload, no int, body io.ReadSeeker, n int64) (string, error) {
	sum, err := sumOf(body)
	if err != nil {
		return "", err
	}
	p, err := c.api.PutObjectPart(ctx, c.bucket, u.Key, u.ID, no, body, n,
		minio.PutObjectPartOptions{Sha256Hex: sum, DisableContentSha256: true})
	if err != nil {
		return "", reason(err)
	}
	return p.ETag, nil
}

// Complete makes an object of the parts.
func (c *client) Complete(ctx context.Context, u remote.Upload, tags []string, when remote.Condition) (remote.Object,
	error) {
	parts := make([]minio.CompletePart, len(tags))
	for i, t := range tags {
		parts[i] = minio.CompletePart{PartNumber: i + 1, ETag: t}
	}
	var opts minio.PutObjectOptions
	condition(&opts, when)
	info, err := c.api.CompleteMultipartUpload(ctx, c.bucket, u.Key, u.ID, parts, opts)
	if err != nil {
		return remote.Object{}, refused(err, when)
	}
	return remote.Object{Key: u.Key, Size: -1, Stamp: info.ETag}, nil
}

// Discard removes an upload.
func (c *client) Discard(ctx context.Context, u remote.Upload) error {
	err := c.api.AbortMultipartUpload(ctx, c.bucket, u.Key, u.ID)
	if err == nil {
		return nil
	}
	if err = reason(err); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// pageUploads is the maximum number of uploads per page.
const pageUploads = 1000

// Uploads lists incomplete uploads, each with the size of its first part, which takes another request per upload.
func (c *client) Uploads(ctx context.Context, prefix string, after remote.Upload) (page []remote.Upload, more bool,
	err error) {
	l, err := c.api.ListMultipartUploads(ctx, c.bucket, prefix, after.Key, after.ID, "", pageUploads)
	if err != nil {
		return nil, false, reason(err)
	}
	for _, u := range l.Uploads {
		x := remote.Upload{Key: u.Key, ID: u.UploadID, Begun: u.Initiated}
		parts, err := c.api.ListObjectParts(ctx, c.bucket, u.Key, u.UploadID, 0, 1)
		if err == nil && len(parts.ObjectParts) > 0 {
			x.First = parts.ObjectParts[0].Size
		}
		if err := reason(err); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, false, err
		}
		page = append(page, x)
	}
	return page, l.IsTruncated, nil
}

// Delete removes an object.
func (c *client) Delete(ctx context.Context, key string) error {
	return reason(c.api.RemoveObject(ctx, c.bucket, key, minio.RemoveObjectOptions{}))
}
