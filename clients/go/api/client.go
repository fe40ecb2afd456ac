package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/Khan/genqlient/graphql"
)

// No single answer takes longer; streams have no limit.
const patience = 30 * time.Second

// Client reaches the load balancers of one project.
type Client struct {
	// HTTP is what queries and mutations are given.
	HTTP graphql.Client

	endpoint *url.URL
	token    string
}

// Connect makes a client of an endpoint like https://host/projects/demo/graphql. Nothing is sent
// yet. An empty token sends none.
func Connect(endpoint, token string) (*Client, error) {
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	if (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
		return nil, fmt.Errorf("%q is no URL of http or https", endpoint)
	}
	doer := &authorized{token: token, client: &http.Client{Timeout: patience}}
	return &Client{HTTP: graphql.NewClient(endpoint, doer), endpoint: parsed, token: token}, nil
}

type authorized struct {
	token  string
	client *http.Client
}

func (a *authorized) Do(request *http.Request) (*http.Response, error) {
	request.Header.Set("Accept", "application/graphql-response+json, application/json")
	if a.token != "" {
		request.Header.Set("Authorization", "Bearer "+a.token)
	}
	return a.client.Do(request)
}

// Stream hands the results of one subscription to handle until that is done, the server completes
// the subscription, or ctx ends. start is a generated function: it gets the socket to send on.
// A connection that breaks is an error of type *Broken.
func Stream[T any](
	ctx context.Context,
	client *Client,
	start func(graphql.WebSocketClient) (chan T, error),
	handle func(T) (done bool, err error),
) error {
	socket := newSocket(client.endpoint, client.token)
	broken, err := socket.Start(ctx)
	if err != nil {
		return err
	}
	defer socket.Close()
	results, err := start(socket)
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case result, open := <-results:
			if !open {
				select {
				case err := <-broken:
					return err
				default:
					return nil
				}
			}
			if done, err := handle(result); done || err != nil {
				return err
			}
		}
	}
}
