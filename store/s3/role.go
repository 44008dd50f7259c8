package s3

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"stoa/store/remote"
)

// chain gives the first credentials that there are: of the environment, the profile, the role. The library's own chain
// makes anonymous requests when credentials cannot be renewed, and without any asks for some at each request.
type chain struct {
	all    []credentials.Provider
	role   credentials.Provider // one of all, which must have credentials, because it was configured; nil: none must
	chosen credentials.Provider // nil: there are no credentials
	asked  bool
}

func (c *chain) Retrieve() (credentials.Value, error) { return c.RetrieveWithCredContext(nil) }

// IsExpired reports whether credentials have to be asked for.
func (c *chain) IsExpired() bool { return !c.asked || c.chosen != nil && c.chosen.IsExpired() }

// RetrieveWithCredContext returns the credentials, or those of anonymous requests if there are none.
func (c *chain) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	for _, p := range c.all {
		if c.chosen != nil && c.chosen != p {
			continue
		}
		v, err := p.RetrieveWithCredContext(cc)
		if err == nil && v.AccessKeyID != "" {
			c.asked, c.chosen = true, p
			return v, nil
		}
		if cc != nil && cc.Context != nil && cc.Context.Err() != nil {
			return credentials.Value{}, cc.Context.Err() // it was not answered
		}
		if p == c.chosen || p == c.role {
			return credentials.Value{}, &remote.Error{Again: true,
				Reason: "there are no credentials, or they could not be renewed" + why(err)}
		}
	}
	c.asked = true
	return credentials.Value{SignerType: credentials.SignatureAnonymous}, nil
}

// why returns the reason of an error without the address that was asked, which may be secret, and of what was answered
// no more than the status.
func why(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		return ": " + u.Err.Error()
	}
	if err != nil && len(err.Error()) >= len("500") {
		if status, err := strconv.Atoi(err.Error()[:3]); err == nil {
			return fmt.Sprintf(": HTTP status %d", status)
		}
	}
	return ""
}

// roleTimeout is how long a role may take to answer.
const roleTimeout = 2 * time.Second

// roleOf returns what gives the credentials of the container, the instance or the web identity, and whether one was
// configured; nil: none is to be asked.
func roleOf() (role *credentials.IAM, configured bool) {
	identity := os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != ""
	container := cmp.Or(os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
		os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")) != ""
	if !identity && !container && isTrue("AWS_EC2_METADATA_DISABLED") {
		return nil, false
	}
	role = &credentials.IAM{Client: &http.Client{Timeout: roleTimeout}}
	if identity {
		return role, true
	}
	// what gives credentials is on this machine: it is not asked by way of a proxy, and does not send anyone elsewhere
	role.Client.Transport = &http.Transport{}
	role.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if container {
		return role, true
	}
	role.Endpoint = strings.TrimRight(os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "/")
	return role, role.Endpoint != ""
}
