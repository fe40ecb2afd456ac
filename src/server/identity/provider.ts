import type { Logger } from 'pino'
import type { IdentityProvider } from '../../config/environment.ts'
import { EDITOR, type Identify, OPERATOR, permissionIds } from '../caller.ts'
import { byClaims } from './authorize.ts'
import { identifyBearer } from './bearer.ts'
import { IssuerKeys } from './keys.ts'
import { byReviews } from './reviews.ts'
import { Tokens } from './tokens.ts'

/** How production recognises callers: tokens of its identity provider. */
export function identifyBy(provider: IdentityProvider, logger: Logger): Identify {
  const { issuer, audience, jwksUrl, reviewsUrl } = provider
  const keys = new IssuerKeys({
    issuer,
    jwksUrl,
    onError: (err) => logger.error({ err, issuer }, 'the keys of the issuer could not be read'),
  })
  const tokens = new Tokens({ issuer, audience, keys: keys.get })
  if (reviewsUrl === undefined) return identifyBearer(tokens, byClaims)
  const project = [...permissionIds(EDITOR)]
  const operators = [...permissionIds([...EDITOR, ...OPERATOR])]
  const reviews = byReviews({
    url: reviewsUrl,
    permissions: { project, operators },
    onError: (err) => logger.error({ err }, 'access could not be reviewed'),
  })
  return identifyBearer(tokens, reviews)
}
