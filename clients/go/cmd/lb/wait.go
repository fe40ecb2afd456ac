package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"github.com/Khan/genqlient/graphql"

	"network-load-balancers/clients/go/api"
)

const attempts = 5

// again calls what talks to the server once more when the connection broke, four times at most.
func again(ctx context.Context, try func() error) error {
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || attempt == attempts || !worthwhile(err) {
			return err
		}
		pause(ctx, 100*time.Millisecond<<attempt)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// pause lasts half to one and a half times as long, so that a server that restarts doesn't get
// all its clients at once.
func pause(ctx context.Context, about time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(float64(about) * (0.5 + rand.Float64()))):
	}
}

// worthwhile tells failures of a connection from answers.
func worthwhile(err error) bool {
	if broken, ok := errors.AsType[*api.Broken](err); ok {
		return !broken.Final()
	}
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

// settle waits if asked to, and shows the load balancer as it then is.
func (f *flags) settle(ctx context.Context, client *api.Client, waiting *waiting, changed *api.LoadBalancerFields) error {
	if waiting.wait {
		outcome, settled, err := f.wait(ctx, client, waiting, changed.Id, &changed.Generation)
		if err != nil {
			return err
		}
		switch outcome {
		case api.SettleOutcomeSettled:
		case api.SettleOutcomeSuperseded:
			return errors.New("it was changed again before this change was in effect")
		case api.SettleOutcomeDeleted:
			return errors.New("it was deleted meanwhile")
		default:
			return fmt.Errorf("it ended with %s, which this version doesn't know", outcome)
		}
		if settled != nil {
			changed = settled
		}
	}
	return f.show(changed)
}

// wait says what is missing until nothing is any more, and how that came out.
func (f *flags) wait(
	ctx context.Context,
	client *api.Client,
	waiting *waiting,
	id string,
	generation *int,
) (outcome api.SettleOutcome, settled *api.LoadBalancerFields, err error) {
	deadline := time.Now().Add(waiting.timeout)
	// The server ends it in time. This is for one that doesn't answer.
	ctx, cancel := context.WithDeadline(ctx, deadline.Add(10*time.Second))
	defer cancel()
	err = again(ctx, func() error {
		seconds := max(0, int(time.Until(deadline).Seconds()+0.999))
		start := func(socket graphql.WebSocketClient) (chan api.SettledWsResponse, error) {
			results, _, err := api.Settled(ctx, socket, id, generation, &seconds)
			return results, err
		}
		return api.Stream(ctx, client, start, func(result api.SettledWsResponse) (bool, error) {
			if len(result.Errors) > 0 {
				return false, result.Errors
			}
			event := result.Data.LoadBalancerSettled
			outcome, settled = event.Outcome, event.LoadBalancer
			for _, unmet := range event.Unmet {
				fmt.Fprintf(f.call.err, "%s: %s is %s: %s (%s)\n", strings.ToLower(string(outcome)), unmet.Type, unmet.Status, unmet.Message, unmet.Reason)
			}
			return outcome != api.SettleOutcomeWaiting, nil
		})
	})
	if err == nil && outcome == api.SettleOutcomeTimedOut {
		err = errTimedOut
	}
	if err == nil && (outcome == "" || outcome == api.SettleOutcomeWaiting) {
		err = errors.New("the server stopped telling how far it is")
	}
	return outcome, settled, err
}
