import { describe, expect, it } from 'vitest'
import { readVantageEnvironment } from '../../src/config/vantage.ts'

const whole = { API_URL: 'https://lb.example.com/graphql', API_TOKEN: 'token', VANTAGE: 'oslo' }

describe('the environment of a vantage point', () => {
  it('is read, with a round every 15 seconds where nothing else is said', () => {
    expect(readVantageEnvironment(whole)).toEqual({
      apiUrl: whole.API_URL,
      apiToken: 'token',
      name: 'oslo',
      intervalSeconds: 15,
    })
    const slower = readVantageEnvironment({ ...whole, VANTAGE_INTERVAL_SECONDS: '20' })
    expect(slower.intervalSeconds).toBe(20)
  })

  it('needs no token on this machine', () => {
    const { apiToken } = readVantageEnvironment({
      API_URL: 'http://127.0.0.1:4000/graphql',
      VANTAGE: 'here',
    })
    expect(apiToken).toBeUndefined()
  })

  it.each([
    ['API_URL', undefined],
    ['API_URL', 'http://lb.example.com/graphql'],
    ['API_TOKEN', ''],
    ['VANTAGE', undefined],
    ['VANTAGE', 'two words'],
    ['VANTAGE_INTERVAL_SECONDS', '21'],
    ['VANTAGE_INTERVAL_SECONDS', 'often'],
  ])('is refused in one line where %s is %s', (variable, value) => {
    expect(() => readVantageEnvironment({ ...whole, [variable]: value })).toThrow(
      new RegExp(`^${variable}: expected [^\\n]+$`),
    )
  })
})
