import { expect, test } from 'vitest'
import { Telling } from '../../src/clusters/telling.ts'
import type { KubeObject } from '../../src/rules/objects.ts'

const object = (name: string, version: number): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name, namespace: 'n', resourceVersion: String(version) },
})

test('one pause is left for each object that is not taken, however often it changes, and none at the end', () => {
  const pauses = new Set<AbortSignal>()
  const sleep = (_: number, signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      pauses.add(signal)
      signal.addEventListener('abort', () => {
        pauses.delete(signal)
        resolve()
      })
    })
  const thrown: (string | undefined)[] = []
  const telling = new Telling<KubeObject>(
    {
      changed() {
        throw new Error('mistake')
      },
    },
    {
      clock: { now: () => 0, sleep },
      random: () => 0.5,
      onHandlerError: (_, key) => thrown.push(key),
    },
  )
  for (const name of ['a', 'b'])
    for (let version = 1; version <= 20; version += 1)
      telling.changed(object(name, version), version === 1 ? undefined : object(name, version - 1))
  expect(thrown).toHaveLength(40)
  expect(pauses.size).toBe(2)
  telling.close()
  expect(pauses.size).toBe(0)
})
