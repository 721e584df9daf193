// Mercurius with its own batching loaders; the second argument `jit` compiles operations.
import Fastify from 'fastify'
import mercurius from 'mercurius'
import { port, queries, typeDefs, usersOf } from './data.mjs'

const app = Fastify()
app.register(mercurius, {
  schema: typeDefs,
  resolvers: { Query: queries },
  loaders: { Comment: { author: { loader: (asked) => usersOf(asked.map(({ obj }) => obj.authorId)), opts: { cache: false } } } },
  jit: process.argv[3] === 'jit' ? 1 : 0,
})
await app.listen({ port, host: '127.0.0.1' })
