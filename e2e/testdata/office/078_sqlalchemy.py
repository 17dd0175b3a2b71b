# Tables as classes with SQLAlchemy.
import pandas as pd
from sqlalchemy import ForeignKey, create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

class Base(DeclarativeBase):
    pass

class Team(Base):
    __tablename__ = "team"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    players: Mapped[list["Player"]] = relationship(back_populates="team")

class Player(Base):
    __tablename__ = "player"
    id: Mapped[int] = mapped_column(primary_key=True)
    goals: Mapped[int]
    team_id: Mapped[int] = mapped_column(ForeignKey("team.id"))
    team: Mapped[Team] = relationship(back_populates="players")

engine = create_engine("sqlite:///league.db")
Base.metadata.create_all(engine)
with Session(engine) as s:
    s.add_all([Team(name="Red", players=[Player(goals=3), Player(goals=4)]), Team(name="Blue", players=[Player(goals=5)])])
    s.commit()
    print(s.execute(select(Team.name, func.sum(Player.goals)).join(Player).group_by(Team.name).order_by(Team.name)).all())
print(pd.read_sql("SELECT COUNT(*) AS n FROM player", engine)["n"][0])
