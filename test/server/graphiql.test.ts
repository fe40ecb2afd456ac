import { existsSync } from 'node:fs'
import { type Browser, chromium, type Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { readExamples } from '../../src/server/examples.ts'
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

/** A page of a browser that reaches no other host; `complaints` are what it had to say against it. */
async function open(
  chrome: Browser,
): Promise<{ page: Page; elsewhere: string[]; complaints: string[] }> {
  const page = await chrome.newPage()
  const elsewhere: string[] = []
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    if (message.text().includes('Content Security Policy')) complaints.push(message.text())
  })
  await page.route('**/*', async (route) => {
    const request = route.request()
    if (new URL(request.url()).origin === service.server.url) return route.continue()
    elsewhere.push(request.url())
    await route.abort()
  })
  await page.goto(service.url())
  await page.getByText('query LoadBalancers').first().waitFor()
  return { page, elsewhere, complaints }
}

/** Puts a token in place of the one that the editor of headers suggests. */
async function giveToken(page: Page, token: string): Promise<void> {
  await page.getByRole('button', { name: 'Headers' }).click()
  const editor = page.locator('.graphiql-editor-tool .monaco-editor').last()
  await editor.getByText('<your token>').waitFor()
  await editor.click()
  await page.keyboard.press('Control+A')
  await page.keyboard.insertText(JSON.stringify({ authorization: `Bearer ${token}` }))
  // The editor closes by itself what is closed already.
  await page.keyboard.press('Control+Shift+End')
  await page.keyboard.press('Delete')
}

async function run(page: Page, operation: string): Promise<void> {
  await page.getByRole('button', { name: /^Execute query/ }).click()
  await page.getByRole('menuitem', { name: operation }).click()
}

test.skipIf(!existsSync(browser))(
  `GraphiQL works offline: a query, and a subscription that changes (Chromium at ${browser})`,
  { timeout: 60_000 },
  async () => {
    const { id } = await create(service, 'shown')
    const chrome = await chromium.launch({ executablePath: browser, args: ['--no-sandbox'] })
    try {
      const { page, elsewhere, complaints } = await open(chrome)
      const result = page.locator('.result-window')
      await giveToken(page, 'alice')
      await run(page, 'LoadBalancers')
      await result.getByText('"shown"').first().waitFor()
      await run(page, 'Watch')
      await result.getByText('"SYNCED"').first().waitFor()
      await service.query(
        'mutation ($id: ID!) { updateLoadBalancer(input: { id: $id, displayName: "x" }) { __typename } }',
        { id },
      )
      await result.getByText('"MODIFIED"').first().waitFor()
      expect(elsewhere).toEqual([])
      expect(complaints).toEqual([])
    } finally {
      await chrome.close()
    }
  },
)

test.skipIf(!existsSync(browser))(
  `GraphiQL has the operations of docs/api.md in its tabs, and the schema's documentation (Chromium at ${browser})`,
  { timeout: 60_000 },
  async () => {
    const chrome = await chromium.launch({ executablePath: browser, args: ['--no-sandbox'] })
    try {
      const { page } = await open(chrome)
      await giveToken(page, 'alice')
      const tabs = page.getByRole('tab')
      const { length } = await readExamples()
      expect(length).toBeGreaterThan(10)
      // The first tab lists the load balancers.
      await expect.poll(() => tabs.count()).toBe(1 + length)
      for (const name of ['FindAddresses', 'CreateLoadBalancer', 'WaitUntilSettled', 'History']) {
        await page.getByRole('tab', { name }).waitFor()
      }
      await page.getByRole('button', { name: /re-fetch/i }).click()
      await page.getByRole('button', { name: /documentation/i }).click()
      await page.getByText('A GraphQL schema provides').waitFor()
    } finally {
      await chrome.close()
    }
  },
)
