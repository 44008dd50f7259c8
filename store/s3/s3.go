// Package s3 is the client for S3 and compatible stores. Importing it makes s3://bucket/key a place for stoa. A version
// of an object is s3://bucket/key?versionId=ID.
//
// Credentials and endpoint are configured as for other programs: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
// AWS_SESSION_TOKEN, AWS_PROFILE with the files in ~/.aws (AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE), or the
// credentials of the machine, container or web identity; AWS_REGION; AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL for a
// server other than Amazon's, with buckets in the path unless AWS_S3_ADDRESSING_STYLE is virtual. Requests are
// anonymous if AWS_NO_SIGN_REQUEST is true, or if there are no credentials.
package s3

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"stoa/store"
	"stoa/store/remote"
)

func init() { remote.Register("s3", Open) }

// Open returns the client for an address's bucket, configured by the environment.
func Open(ctx context.Context, a remote.Address) (remote.Client, error) {
	if a.User != "" {
		return nil, errors.New("expected keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, found " +
			"them in the address")
	}
	if err := s3utils.CheckValidBucketName(a.Host); err != nil {
		return nil, &remote.Error{Reason: "this is not a valid bucket name"}
	}
	s, err := environment(ctx)
	if err != nil {
		return nil, err
	}
	c, err := minio.New(s.endpoint, &minio.Options{Creds: s.creds, Secure: s.secure, Region: s.region,
		BucketLookup: s.lookup, Transport: listings{remote.Transport()}, MaxRetries: 1})
	if err != nil {
		return nil, reason(err)
	}
	return &client{api: minio.Core{Client: c}, bucket: a.Host}, nil
}

type client struct {
	api    minio.Core
	bucket string
}

func (c *client) Traits() remote.Traits { return remote.Traits{Lists: true} }

// pageKeys is the maximum number of keys per page.
const pageKeys = 1000

// List returns a page of keys.
func (c *client) List(ctx context.Context, prefix, after string, shallow bool) (page []remote.Object, more bool,
	err error) {
	if strings.HasSuffix(after, "/") {
		after += "\U0010ffff" // after all keys grouped under the prefix
	}
	no, seen := false, map[string]bool{}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for o := range c.api.ListObjectsIter(ctx, c.bucket, minio.ListObjectsOptions{Prefix: prefix, StartAfter: after,
		Recursive: !shallow, MaxKeys: pageKeys, FetchOwner: &no}) {
		if o.Err != nil {
			return nil, false, reason(o.Err)
		}
		if o.Key == "" {
			continue
		}
		if dir := strings.HasSuffix(o.Key, "/"); seen[o.Key] || !dir && o.Key <= after {
			return nil, false, &remote.Error{Reason: "the store lists the key " + printable(o.Key) + " again"}
		}
		seen[o.Key] = true
		x := remote.Object{Key: o.Key, Size: o.Size, Stamp: stampOf(o.ETag, o.LastModified), Changed: o.LastModified}
		if shallow && strings.HasSuffix(o.Key, "/") && o.ETag == "" {
			x = remote.Object{Key: o.Key, Dir: true}
		}
		if page = append(page, x); len(page) == pageKeys {
			return page, true, nil
		}
	}
	return page, false, nil
}

// Head returns an object's size and ETag.
func (c *client) Head(ctx context.Context, key, version string) (remote.Object, error) {
	o, err := c.api.StatObject(ctx, c.bucket, key, minio.StatObjectOptions{VersionID: versionID(version)})
	if err != nil {
		return remote.Object{}, reason(err)
	}
	return remote.Object{Key: key, Size: o.Size, Stamp: stampOf(o.ETag, o.LastModified), Changed: o.LastModified}, nil
}

// versionID returns the version in the query of an address.
func versionID(query string) string { return strings.TrimPrefix(query, "versionId=") }

// stampOf returns an object's ETag, or else the time of its last change, in the form of HTTP's headers: a gateway to a
// file system may have no ETag of files that did not come through it.
func stampOf(etag string, changed time.Time) string {
	if etag == "" && changed.Unix() > 0 {
		return changed.UTC().Format(http.TimeFormat)
	}
	return etag
}

// sameAs demands that the object still has the stamp. A time is compared with that of the answer: some gateways compare
// it with one that has fractions of a second.
func sameAs(opts *minio.GetObjectOptions, stamp string) error {
	if !remote.Strong(stamp) {
		return nil
	}
	return opts.SetMatchETag(stamp)
}

// Get requests a range of the object with the stamp of o.
func (c *client) Get(ctx context.Context, o remote.Object, version string, off, n int64) (remote.Body, error) {
	opts := minio.GetObjectOptions{VersionID: versionID(version)}
	if n >= 0 {
		if err := opts.SetRange(off, off+n-1); err != nil {
			return remote.Body{}, err
		}
	}
	if err := sameAs(&opts, o.Stamp); err != nil {
		return remote.Body{}, err
	}
	body, info, h, err := c.api.GetObject(ctx, c.bucket, o.Key, opts)
	if err != nil {
		return remote.Body{}, reason(err)
	}
	status := http.StatusOK
	if h.Get("Content-Range") != "" {
		status = http.StatusPartialContent
	}
	from, size := remote.RangeOf(status, h)
	// an object may have been stored compressed, with this header; then lengths are those of what was stored
	encoded := h.Get("Content-Encoding") != ""
	switch {
	case encoded && (from < 0 || h.Get("Content-Length") == "" || o.Size >= 0 && size != o.Size):
		err = remote.ErrCompressed
	case from < 0, h.Get("Content-Range") == "" && n >= 0 && size == n && n != o.Size:
		err = remote.ErrNoRange
	}
	if err != nil {
		body.Close()
		return remote.Body{}, err
	}
	return remote.Body{ReadCloser: body, Off: from, Object: remote.Object{Key: o.Key, Size: size,
		Stamp: stampOf(info.ETag, info.LastModified), Changed: info.LastModified}}, nil
}

// messages are texts for the most frequent error codes.
var messages = map[string]string{
	"NoSuchKey": "there is no such object", "NoSuchBucket": "there is no such bucket",
	"NoSuchVersion": "there is no such version", "NoSuchUpload": "there is no such upload",
	"AccessDenied": "access denied",
	"ExpiredToken": "the credentials have expired", "InvalidAccessKeyId": "the access key is not known",
	"SignatureDoesNotMatch": "the secret key is wrong", "SlowDown": "too many requests",
	"RequestTimeTooSkewed": "this machine's clock is wrong", "InvalidToken": "the session token is not valid",
	"InvalidObjectState": "the object is archived, and has to be restored first",
}

// reason converts an error of the library. Of the server's answer it uses only the code, as the rest may repeat what
// was sent.
func reason(err error) error {
	if err == nil {
		return nil
	}
	var e minio.ErrorResponse
	if !errors.As(err, &e) {
		return remote.TransportError(err)
	}
	if e.StatusCode == 0 {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if strings.HasPrefix(e.Message, "Last-Modified ") {
			return &remote.Error{Reason: "the answer has no time of the last change (Last-Modified), as S3's have"}
		}
		return &remote.Error{Reason: e.Code + ": " + e.Message} // from the library itself, before anything was sent
	}
	what := messages[e.Code]
	if what == "" {
		what = printable(e.Code)
	}
	if e.Region != "" && (e.StatusCode == http.StatusMovedPermanently || e.Code == "AuthorizationHeaderMalformed") {
		what = "the bucket is in another region: AWS_REGION should be " + printable(e.Region)
	}
	out := remote.StatusError(e.StatusCode, what, nil)
	switch e.Code {
	case "NoSuchKey", "NoSuchBucket", "NoSuchVersion", "NoSuchUpload":
		out.Kind = fs.ErrNotExist
	case "AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken",
		"RequestTimeTooSkewed":
		out.Kind, out.Again, out.Credentials = fs.ErrPermission, false, e.Code != "AccessDenied"
	case "PreconditionFailed", "InvalidRange":
		out.Kind, out.Again = store.ErrChanged, false
	case "SlowDown", "InternalError", "RequestTimeout", "ServiceUnavailable":
		out.Again = true
	}
	return out
}

// printable returns a word sent by a server, without unusual characters and with limited length.
func printable(s string) string {
	s = s[:min(len(s), 60)]
	return strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f {
			return r
		}
		return -1
	}, s)
}
