// Shared by the Node servers: the data, the schema and the resolvers.
import { readFileSync } from 'node:fs'
import DataLoader from 'dataloader'

const read = (path) => readFileSync(path, 'utf8')
const { comments, users, contenders } = JSON.parse(read(process.env.BENCH_DATA))
const people = new Map(users.map((user) => [user.id, user]))

export const port = Number(process.argv[2])
export const typeDefs = read(new URL('sdl.graphql', import.meta.url))
export const usersOf = async (ids) => ids.map((id) => people.get(id))
export const context = () => ({ users: new DataLoader(usersOf) })
export const queries = {
  comments: async (_, { first }) => {
    const shown = comments.slice(0, first)
    return {
      edges: shown.map((comment) => ({ cursor: comment.cursor, node: comment })),
      pageInfo: { hasNextPage: true, endCursor: shown.at(-1).cursor },
      totalCount: comments.length,
    }
  },
  leaderboard: async (_, { first }) =>
    contenders.slice(0, first).map(({ rank, score, wins, losses, id, name, imageUrl }) => ({
      rank, score, wins, losses, contender: { id, name, imageUrl },
    })),
}
export const resolvers = {
  Query: queries,
  Comment: { author: (comment, _, { users }) => users.load(comment.authorId) },
}
