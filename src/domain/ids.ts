import { v7 } from 'uuid'

/** A new id: UUIDv7, so that ids of one process rise with time (PostgreSQL makes them itself only from 18 on). */
export const newId = (): string => v7()

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether a text can be asked for in the store at all. */
export const isId = (text: string): boolean => UUID.test(text)
