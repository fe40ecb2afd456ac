import { builder } from './builder.ts'

export const AddressFamily = builder.enumType('AddressFamily', {
  description: 'The two kinds of internet addresses.',
  values: {
    IPV4: { description: 'Internet Protocol version 4, e.g. `192.0.2.7`.' },
    IPV6: { description: 'Internet Protocol version 6, e.g. `2001:db8::7`.' },
  } as const,
})
