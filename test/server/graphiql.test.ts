import { existsSync } from 'node:fs'
import { chromium } from 'playwright-core'
import { expect, test } from 'vitest'
import { create, useService } from './service.ts'

const service = useService()
const browser = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

test('a browser is served a page, packed, once', async () => {
  const page = await fetch(service.url(), { headers: { accept: 'text/html,*/*' } })
  expect(page.status).toBe(200)
  expect(page.headers.get('content-type')).toContain('text/html')
  expect(await page.text()).toContain('<div id="root">')
  const etag = page.headers.get('etag') ?? ''
  const again = await fetch(service.url(), {
    headers: { accept: 'text/html', 'if-none-match': etag },
  })
  expect(again.status).toBe(304)
})

test('GraphiQL works in a browser that reaches no other host, streams included', async (context) => {
  if (!existsSync(browser)) return context.skip(`there is no browser at ${browser} (CHROMIUM)`)
  await create(service, 'shown')
  const chrome = await chromium.launch({ executablePath: browser, args: ['--no-sandbox'] })
  try {
    const page = await chrome.newPage()
    const elsewhere: string[] = []
    const complaints: string[] = []
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('console', (message) => {
      if (message.text().includes('Content Security Policy')) complaints.push(message.text())
    })
    await page.route('**/*', async (route) => {
      const request = route.request()
      const { origin } = new URL(request.url())
      if (origin === service.server.url) {
        // Browsers can't be given a token before the page runs.
        const headers = { ...request.headers(), authorization: 'Bearer alice' }
        return route.continue({ headers })
      }
      elsewhere.push(request.url())
      await route.abort()
    })
    await page.goto(service.url())
    await page.getByText('query LoadBalancers').first().waitFor()
    const run = page.getByRole('button', { name: /^Execute query/ })
    await run.click()
    await page.getByRole('menuitem', { name: 'LoadBalancers' }).click()
    await page.locator('.result-window').getByText('"shown"').first().waitFor()
    expect(elsewhere).toEqual([])
    expect(complaints).toEqual([])
  } finally {
    await chrome.close()
  }
})
