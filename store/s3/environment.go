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
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"gopkg.in/ini.v1"
)

// settings are whom to ask, and as whom.
type settings struct {
	endpoint string
	secure   bool
	region   string
	lookup   minio.BucketLookupType
	creds    *credentials.Credentials
}

// environment reads the settings.
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
			return s, errors.New("AWS_ENDPOINT_URL_S3 is not http://HOST:PORT or https://HOST:PORT")
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
		return s, errors.New("AWS_S3_ADDRESSING_STYLE is path, virtual or auto")
	}
	s.creds, err = identity()
	return s, err
}

// isTrue reports whether a variable switches something on.
func isTrue(name string) bool {
	switch strings.ToLower(os.Getenv(name)) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}

// identity is where credentials come from. A profile that is named must have some: to ask as nobody instead would
// have the store say that there is nothing.
func identity() (*credentials.Credentials, error) {
	if isTrue("AWS_NO_SIGN_REQUEST") {
		return credentials.NewStatic("", "", "", credentials.SignatureAnonymous), nil
	}
	file := &credentials.FileAWSCredentials{}
	providers := []credentials.Provider{&credentials.EnvAWS{}, file}
	if named := os.Getenv("AWS_PROFILE"); named != "" && os.Getenv("AWS_ACCESS_KEY_ID") == "" {
		if v, err := file.RetrieveWithCredContext(&credentials.CredContext{Client: http.DefaultClient}); err != nil ||
			v.AccessKeyID == "" {
			return nil, fmt.Errorf("the profile %s has no credentials", named)
		}
	}
	if !isTrue("AWS_EC2_METADATA_DISABLED") {
		providers = append(providers, &credentials.IAM{Client: &http.Client{Timeout: 2 * time.Second,
			Transport: http.DefaultTransport}})
	}
	return credentials.NewChainCredentials(providers), nil
}

// profileOf is what the configuration file says of the profile; nil: nothing.
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
