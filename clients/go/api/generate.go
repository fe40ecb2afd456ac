// Package api is a client of the load balancer API: what is asked (generated from
// operations.graphql) and how it gets there (HTTP, and websockets for subscriptions).
package api

//go:generate go tool genqlient ../genqlient.yaml
