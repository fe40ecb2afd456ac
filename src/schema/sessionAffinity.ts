import { builder } from './builder.ts'

export const SessionAffinity = builder.enumType('SessionAffinity', {
  description:
    'Which connections are sure to reach the same backend while the set of serving backends stays the same.',
  values: {
    NONE: { description: 'Any connection may go to any backend. The default.' },
    CLIENT_IP: { description: 'All connections of one client address go to one backend.' },
    CLIENT_IP_AND_PROTOCOL: {
      description: 'All connections of one client address and IP protocol go to one backend.',
    },
  } as const,
})
