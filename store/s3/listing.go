package s3

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"

	"stoa/store/remote"
)

// listings checks the answers to listings. The library takes whatever XML it gets, such as the page of a proxy, for a
// page without keys that is the last one, and then fewer tables would be there than there are.
type listings struct{ http.RoundTripper }

// maxListing is the largest size of a page in bytes: a thousand keys have at most 1,024 bytes each, escaped as %XX.
const maxListing = 16 << 20

func (t listings) RoundTrip(r *http.Request) (*http.Response, error) {
	a, err := t.RoundTripper.RoundTrip(r)
	if err != nil || a.StatusCode != http.StatusOK || r.URL.Query().Get("list-type") == "" {
		return a, err
	}
	b, err := io.ReadAll(io.LimitReader(a.Body, maxListing))
	a.Body.Close()
	if err != nil {
		return nil, err
	}
	var page struct {
		XMLName   xml.Name `xml:"ListBucketResult"`
		Truncated *bool    `xml:"IsTruncated"`
	}
	if xml.Unmarshal(b, &page) != nil || page.Truncated == nil {
		return nil, &remote.Error{Again: true, Reason: "the answer to a listing is none, or does not say whether " +
			"it is the last page"}
	}
	a.Body = io.NopCloser(bytes.NewReader(b))
	return a, nil
}
