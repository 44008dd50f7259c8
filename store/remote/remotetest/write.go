package remotetest

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// writing is the state that a server of S3 keeps about writes.
type writing struct {
	mu      sync.Mutex
	next    int
	uploads map[string]*upload
}

type upload struct {
	bucket, key string
	begun       time.Time
	parts       map[int][]byte
}

type initiated struct {
	XMLName               xml.Name `xml:"InitiateMultipartUploadResult"`
	Bucket, Key, UploadId string
}

type completed struct {
	XMLName           xml.Name `xml:"CompleteMultipartUploadResult"`
	Bucket, Key, ETag string
}

type uploadList struct {
	XMLName xml.Name `xml:"ListMultipartUploadsResult"`
	Upload  []uploadEntry
}

type uploadEntry struct{ Key, UploadId, Initiated string }

type partList struct {
	XMLName xml.Name `xml:"ListPartsResult"`
	Part    []partEntry
}

type partEntry struct {
	PartNumber, Size int
	ETag             string
}

// Uploads returns how many uploads are incomplete.
func (s *S3) Uploads() int {
	s.writing.mu.Lock()
	defer s.writing.mu.Unlock()
	return len(s.writing.uploads)
}

// write answers a request that writes, or that is about uploads; false for any other request.
func (s *S3) write(w http.ResponseWriter, r *http.Request, bucket, key string) bool {
	q := r.URL.Query()
	id := q.Get("uploadId")
	if r.Method == http.MethodGet && !q.Has("uploads") && id == "" || r.Method == http.MethodHead {
		return false
	}
	s.writing.mu.Lock()
	defer s.writing.mu.Unlock()
	if s.writing.uploads == nil {
		s.writing.uploads = map[string]*upload{}
	}
	u := s.writing.uploads[id]
	if id != "" && (u == nil || u.key != key || u.bucket != bucket) {
		fail(w, r, http.StatusNotFound, "NoSuchUpload")
		return true
	}
	body, err := io.ReadAll(r.Body)
	sum := sha256.Sum256(body)
	if given := r.Header.Get("X-Amz-Content-Sha256"); err != nil ||
		len(given) == 64 && given != hex.EncodeToString(sum[:]) {
		fail(w, r, http.StatusBadRequest, "XAmzContentSHA256Mismatch")
		return true
	}
	switch {
	case r.Method == http.MethodPut && id != "":
		no, _ := strconv.Atoi(q.Get("partNumber"))
		u.parts[no] = body
		w.Header().Set("ETag", md5Of(body))
	case r.Method == http.MethodPut:
		s.put(w, r, bucket, key, body)
	case r.Method == http.MethodPost && q.Has("uploads"):
		s.writing.next++
		id := fmt.Sprint("upload", s.writing.next)
		s.writing.uploads[id] = &upload{bucket, key, time.Now(), map[int][]byte{}}
		answer(w, initiated{Bucket: bucket, Key: key, UploadId: id})
	case r.Method == http.MethodPost:
		s.complete(w, r, u, id, body)
	case r.Method == http.MethodDelete && id != "":
		delete(s.writing.uploads, id)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
		s.remove(bucket, key)
		w.WriteHeader(http.StatusNoContent)
	case id != "":
		answer(w, partsOf(u))
	default:
		answer(w, s.uploadsOf(bucket, q.Get("prefix")))
	}
	return true
}

func answer(w http.ResponseWriter, doc any) {
	w.Header().Set("Content-Type", "application/xml")
	xml.NewEncoder(w).Encode(doc)
}

func md5Of(b []byte) string {
	sum := md5.Sum(b)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

func partsOf(u *upload) (l partList) {
	for no, b := range u.parts {
		l.Part = append(l.Part, partEntry{no, len(b), md5Of(b)})
	}
	slices.SortFunc(l.Part, func(a, b partEntry) int { return a.PartNumber - b.PartNumber })
	return l
}

func (s *S3) uploadsOf(bucket, prefix string) (l uploadList) {
	for id, u := range s.writing.uploads {
		if u.bucket == bucket && strings.HasPrefix(u.key, prefix) {
			l.Upload = append(l.Upload, uploadEntry{u.key, id, u.begun.UTC().Format(time.RFC3339)})
		}
	}
	return l
}

// put stores an object, if the request's conditions hold.
func (s *S3) put(w http.ResponseWriter, r *http.Request, bucket, key string, body []byte) {
	name := filepath.Join(s.Dir, bucket, filepath.FromSlash(key))
	was := etag(name)
	none, match := r.Header.Get("If-None-Match"), r.Header.Get("If-Match")
	switch {
	case s.IgnoreConditions:
	case none == "*" && was != "", match != "" && was != "" && match != was:
		fail(w, r, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	case match != "" && was == "":
		fail(w, r, http.StatusNotFound, "NoSuchKey")
		return
	}
	err := os.MkdirAll(filepath.Dir(name), 0o777)
	if err == nil { // readers see either the old file or the new one
		if err = os.WriteFile(name+".new", body, 0o666); err == nil {
			err = os.Rename(name+".new", name)
		}
	}
	if err != nil {
		fail(w, r, http.StatusInternalServerError, "InternalError")
		return
	}
	if w.Header().Set("ETag", etag(name)); r.Method == http.MethodPost {
		answer(w, completed{Bucket: bucket, Key: key, ETag: etag(name)})
	}
}

// complete makes an object of the parts that a request names.
func (s *S3) complete(w http.ResponseWriter, r *http.Request, u *upload, id string, body []byte) {
	var want struct {
		Part []struct {
			PartNumber int
			ETag       string
		}
	}
	if err := xml.Unmarshal(body, &want); err != nil {
		fail(w, r, http.StatusBadRequest, "MalformedXML")
		return
	}
	var all []byte
	for i, p := range want.Part {
		b, ok := u.parts[p.PartNumber]
		if !ok || strings.Trim(p.ETag, `"`) != strings.Trim(md5Of(b), `"`) {
			fail(w, r, http.StatusBadRequest, "InvalidPart")
			return
		}
		if len(b) < 5<<20 && i < len(want.Part)-1 {
			fail(w, r, http.StatusBadRequest, "EntityTooSmall")
			return
		}
		all = append(all, b...)
	}
	s.put(w, r, u.bucket, u.key, all)
	if w.Header().Get("ETag") != "" {
		delete(s.writing.uploads, id)
	}
}

// remove removes an object, and the directories that this leaves empty, as a store does not have any.
func (s *S3) remove(bucket, key string) {
	name := filepath.Join(s.Dir, bucket, filepath.FromSlash(key))
	os.Remove(name)
	for d := filepath.Dir(name); d != filepath.Join(s.Dir, bucket); d = filepath.Dir(d) {
		if os.Remove(d) != nil {
			return
		}
	}
}
