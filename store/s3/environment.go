package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"gopkg.in/ini.v1"
)

// settings are the endpoint and the credentials.
type settings struct {
	endpoint string
	secure   bool
	region   string
	lookup   minio.BucketLookupType
	creds    *credentials.Credentials
}

// environment reads the settings from the environment.
func environment(context.Context) (s settings, err error) {
	profile, err := profileOf()
	if err != nil {
		return s, err
	}
	s.region = cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), profile["region"])
	s.endpoint, s.secure = "s3.amazonaws.com", true
	if given := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"),
		profile["endpoint_url"]); given != "" {
		u, err := url.Parse(given)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" ||
			u.User != nil {
			return s, errors.New("AWS_ENDPOINT_URL_S3: expected http://HOST:PORT or https://HOST:PORT")
		}
		s.endpoint, s.secure, s.lookup = u.Host, u.Scheme == "https", minio.BucketLookupPath
		s.region = cmp.Or(s.region, "us-east-1")
	}
	switch style := os.Getenv("AWS_S3_ADDRESSING_STYLE"); style {
	case "", "auto":
	case "path":
		s.lookup = minio.BucketLookupPath
	case "virtual":
		s.lookup = minio.BucketLookupDNS
	default:
		return s, errors.New("AWS_S3_ADDRESSING_STYLE: expected path, virtual or auto")
	}
	s.creds, err = credentialsOf()
	return s, err
}

// isTrue reports whether a variable is set to a true value.
func isTrue(name string) bool {
	switch strings.ToLower(os.Getenv(name)) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// credentialsOf returns the credentials. A profile that was set explicitly must have some: without them the store might
// answer anonymous requests as if nothing existed.
func credentialsOf() (*credentials.Credentials, error) {
	if isTrue("AWS_NO_SIGN_REQUEST") {
		return credentials.NewStatic("", "", "", credentials.SignatureAnonymous), nil
	}
	file := &credentials.FileAWSCredentials{}
	if named := os.Getenv("AWS_PROFILE"); named != "" && os.Getenv("AWS_ACCESS_KEY_ID") == "" {
		if v, err := file.RetrieveWithCredContext(&credentials.CredContext{Client: http.DefaultClient}); err != nil ||
			v.AccessKeyID == "" {
			return nil, fmt.Errorf("expected credentials in the profile %s, found none", named)
		}
	}
	c := &chain{all: []credentials.Provider{&credentials.EnvAWS{}, file}}
	if role, configured := roleOf(); role != nil {
		if c.all = append(c.all, role); configured {
			c.role = role
		}
	}
	return credentials.New(c), nil
}

// profileOf returns the settings of the profile in the configuration file, or nil.
func profileOf() (map[string]string, error) {
	name := os.Getenv("AWS_CONFIG_FILE")
	if name == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, nil
		}
		name = filepath.Join(home, ".aws", "config")
	}
	if _, err := os.Stat(name); err != nil {
		return nil, nil
	}
	f, err := ini.Load(name)
	if err != nil {
		return nil, errors.New("the configuration file of AWS cannot be read")
	}
	section := "default"
	if p := os.Getenv("AWS_PROFILE"); p != "" && p != section {
		section = "profile " + p
	}
	s, err := f.GetSection(section)
	if err != nil {
		return nil, nil
	}
	return s.KeysHash(), nil
}
